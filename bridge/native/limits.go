package native

// Limits of the tools. Each is stated by the error or the result that meets it.
const (
	// MaxReadBytes bounds a file that is read whole. A longer one is read in
	// parts, by line.
	MaxReadBytes = 64 << 20
	// MaxRangeBytes bounds the text of one part.
	MaxRangeBytes = 512 << 10
	// DefaultRangeLines is how many lines a part has when only its begin is
	// given.
	DefaultRangeLines = 2000
	// DefaultRangeBytes is how many bytes a part has when only its first byte is
	// given: about what a prompt shows of one result.
	DefaultRangeBytes = 8 << 10
	// MaxWriteBytes bounds the content of one write. Arguments as a whole are
	// bounded by tools.MaxArgumentsBytes as well.
	MaxWriteBytes = 1 << 20
	// MaxEditBytes bounds a file that is edited, before and after: it is held in
	// memory a few times over.
	MaxEditBytes = 8 << 20
	// maxDiffBytes bounds the diff that the result of an edit shows.
	maxDiffBytes = 64 << 10
	// detectBytes is how much of a file is looked at to find out its encoding.
	detectBytes = 256 << 10
	// MaxPathBytes bounds a path; the system takes no longer one.
	MaxPathBytes = 4096
	// maxNameBytes bounds one part of a path; the system takes no longer one.
	maxNameBytes = 255
	// maxLinks bounds the links followed in one path, as the system does.
	maxLinks = 40
	// maxUps bounds the ".." in them: each walks from the workspace again.
	maxUps = 256
	// maxRaces bounds how often a path is walked again because it changed under
	// the walk.
	maxRaces = 32

	// MaxListEntries bounds the entries a listing shows.
	MaxListEntries = 10_000
	// MaxDirEntries bounds the names of one folder that are read at all: they
	// are sorted in memory.
	MaxDirEntries = 1_000_000

	// DefaultSearchMatches and MaxSearchMatches bound the matches of a search.
	DefaultSearchMatches = 100
	MaxSearchMatches     = 1000
	// MaxSearchFiles bounds the files a search looks at.
	MaxSearchFiles = 100_000
	// MaxSearchBytes bounds the bytes a search reads, of all files together.
	MaxSearchBytes = 512 << 20
	// MaxSearchFileBytes bounds a file that a search of a folder looks into; a longer one is data,
	// not text.
	MaxSearchFileBytes = 16 << 20
	// MaxSearchDepth bounds how deep a search goes below its folder.
	MaxSearchDepth = 64
	// MaxMatchBytes bounds the text shown of a line that matches.
	MaxMatchBytes = 400
	// MaxQueryBytes bounds the query and the glob of a search.
	MaxQueryBytes = 1000
	// MaxQuerySteps bounds a regular expression once its repetitions are written
	// out: the time of each byte searched grows with it, and a block is searched
	// without a look at the deadline. A thousand letters fit.
	MaxQuerySteps = 1200

	// blockBytes is how much of a file is held at once while it is scanned, and
	// the longest stretch of a line that a search looks at as a whole.
	blockBytes = 64 << 10
)
