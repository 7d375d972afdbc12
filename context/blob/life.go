package blob

import (
	"maps"
	"slices"
	"time"
)

// The categories of blobs: which sort of call made them. Other names are
// allowed and expire as CategoryTool does.
const (
	CategoryRead   = "read"   // a file that was read
	CategoryList   = "list"   // a listing
	CategorySearch = "search" // results of a search
	CategoryPage   = "page"   // a page of the web
	CategoryShell  = "shell"  // output of a command
	CategoryTool   = "tool"   // anything else that a tool gave
	CategoryNote   = "note"   // what an agent wrote down for itself
	CategoryReport = "report" // the report of a finished task
)

// noteTTL is how long an agent's own notes stay, and what it promotes for
// itself.
const noteTTL = 7 * 24 * time.Hour

func defaultTTLs() map[string]time.Duration {
	return map[string]time.Duration{
		CategoryShell:  30 * time.Minute,
		CategorySearch: 6 * time.Hour,
		CategoryPage:   6 * time.Hour,
		CategoryRead:   24 * time.Hour,
		CategoryList:   24 * time.Hour,
		CategoryTool:   24 * time.Hour,
		CategoryNote:   noteTTL,
		CategoryReport: -1,
	}
}

// Categories returns the categories that have a TTL of their own, in the order
// of their names.
func Categories() []string {
	return slices.Sorted(maps.Keys(defaultTTLs()))
}

// ttl is how long a new blob of a category stays; zero: for ever.
func (s *Store) ttl(category string) time.Duration {
	ttl, known := s.opts.TTL[category]
	if !known {
		ttl = s.opts.TTL[CategoryTool]
	}
	return max(ttl, 0)
}

// Tier is how much a blob is worth keeping. The numbers are part of the stored
// format.
type Tier uint8

// The tiers.
const (
	// Working is where every blob begins.
	Working Tier = iota
	// ShortTerm is for what an agent chose to keep for a while.
	ShortTerm
	// LongTerm is for what stays until it is erased: it never expires.
	LongTerm
)

// String returns "working", "short_term" or "long_term".
func (t Tier) String() string {
	switch t {
	case ShortTerm:
		return "short_term"
	case LongTerm:
		return "long_term"
	}
	return "working"
}

// Archived says how a blob lies in the archive.
type Archived struct {
	// Category is reports, datasets, config or general; empty outside the
	// archive.
	Category string
	// Tags are the owner's own words for it, in the order given.
	Tags []string
	// Time is when it was archived.
	Time time.Time
}

// Entry is a path that leads to a blob.
type Entry struct {
	// Path is where readers find it, such as "workspace/outputs/read_001.txt".
	Path string
	// Aliases are the paths it had before, the first one first. They lead to it,
	// too.
	Aliases []string
	// Ref is the blob's hash in hex.
	Ref string
	// Owner is whose it is: the owner of its scope.
	Owner string
	// StepID is the step that made it, or empty.
	StepID string
	// SessionID is the session it was made in, or empty.
	SessionID string
	// TaskID is the task it was made for, or empty.
	TaskID string
	// Kind is text, json, log, image, audio or binary.
	Kind string
	// MediaType is the content's format, such as "image/png", or empty when it
	// was not told apart.
	MediaType string
	// Category is what sort of call made it; it decides how long the blob stays.
	Category string
	// Size is the number of bytes.
	Size int64
	// Time is when it was stored.
	Time time.Time
	// TTL is how long it stays, in whole milliseconds; zero: for ever.
	TTL time.Duration
	// Tier is how much it is worth keeping, PromoteTime when it was raised.
	Tier        Tier
	PromoteTime time.Time
	// Important keeps it although it has expired.
	Important bool
	// Archive says how it lies in the archive.
	Archive Archived
	// Expired says that its time was over when this entry was read. That deletes
	// nothing: garbage collection does, once nobody refers to it.
	Expired bool
}

// ExpireTime is when the blob expires, and false if it never does.
func (e Entry) ExpireTime() (time.Time, bool) {
	if e.TTL <= 0 || e.Tier == LongTerm {
		return time.Time{}, false
	}
	from := e.Time
	if e.PromoteTime.After(from) {
		from = e.PromoteTime
	}
	return from.Add(e.TTL), true
}

// Home is the path under which the entry is stored: the one it was made with.
func (e Entry) Home() string {
	if len(e.Aliases) > 0 {
		return e.Aliases[0]
	}
	return e.Path
}

// seen fills in what depends on who reads the entry, and when.
func (e Entry) seen(owner string, now time.Time) Entry {
	e.Owner = owner
	expires, ever := e.ExpireTime()
	e.Expired = ever && !now.Before(expires)
	return e
}
