package native

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/bridge/native/glob"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
)

func (f *files) search(ctx context.Context, c tools.Input) (tools.Output, error) {
	s, err := newSearch(f, c)
	if err != nil {
		return tools.Output{}, err
	}
	name := c.String("path", ".")
	if err := s.start(ctx, c.Root, name); err != nil && !errors.Is(err, errEnough) {
		return tools.Output{}, failure(name, err)
	}
	values := map[string]any{
		"query":     c.String("query", ""),
		"matches":   s.matches,
		"count":     int64(len(s.matches)),
		"truncated": s.truncated,
	}
	if s.passedOver > 0 {
		values["note"] = fmt.Sprintf("%d files over %d MiB were not searched, the first is %s: search it by its path", s.passedOver, MaxSearchFileBytes>>20, s.firstOver)
	}
	return tools.Output{Values: values}, nil
}

// search is one search under way.
type search struct {
	files   *files
	match   func(ctx context.Context, line []byte) (bool, error)
	include glob.Pattern
	limit   int
	block   *bufio.Reader

	matches    []any
	truncated  bool
	passedOver int    // files of folders that are too long
	firstOver  string // the path of one
	seenFiles  int
	seenBytes  int64
}

// errEnough ends a search that met a limit.
var errEnough = errors.New("native: search met a limit")

func newSearch(f *files, c tools.Input) (*search, error) {
	s := &search{files: f, limit: DefaultSearchMatches, matches: []any{}, block: bufio.NewReaderSize(nil, blockBytes)}
	for _, argument := range []string{"query", "include"} {
		if len(c.String(argument, "")) > MaxQueryBytes {
			return nil, refuse(argument, fmt.Sprintf("is longer than %d bytes", MaxQueryBytes))
		}
	}
	if n, ok := c.Int("limit"); ok {
		s.limit = int(min(n, MaxSearchMatches))
	}
	var err error
	if s.match, err = matcher(c); err != nil {
		return nil, refuse("query", err.Error())
	}
	if include := c.String("include", ""); include != "" {
		if s.include, err = glob.Parse(include); err != nil {
			return nil, refuse("include", err.Error())
		}
	}
	return s, nil
}

// matcher returns what reports whether a line matches the call's query.
func matcher(c tools.Input) (func(ctx context.Context, line []byte) (bool, error), error) {
	query, fold := c.String("query", ""), c.Bool("ignore_case")
	if !c.Bool("regex") {
		if !fold {
			return func(_ context.Context, line []byte) (bool, error) { return bytes.Contains(line, []byte(query)), nil }, nil
		}
		query = regexp.QuoteMeta(query)
	}
	if fold {
		query = "(?i)" + query
	}
	steps, err := stepsOf(query)
	if err != nil {
		return nil, err
	}
	pattern, err := regexp.Compile(query)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, line []byte) (bool, error) {
		if steps*len(line) <= quickSteps {
			return pattern.Match(line), nil
		}
		reader := &endingReader{ctx: ctx, text: line, every: max(quickSteps/steps, 1)}
		return pattern.MatchReader(reader) && reader.err == nil, reader.err
	}, nil
}

// stepsOf is what a query compiles to: the time for a line is its length times this. It
// refuses too many.
func stepsOf(query string) (int, error) {
	parsed, err := syntax.Parse(query, syntax.Perl)
	if err != nil {
		return 0, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	if len(program.Inst) > MaxQuerySteps {
		return 0, fmt.Errorf("repeats too much: %d steps, at most %d are allowed", len(program.Inst), MaxQuerySteps)
	}
	return len(program.Inst), nil
}

// quickSteps is how many bytes times steps are looked at without a look at the context.
const quickSteps = 1 << 18

// endingReader gives a text to an expression until the context ends, which an expression
// alone does not notice.
type endingReader struct {
	ctx      context.Context // lasts as long as the reader
	text     []byte
	at, next int // next is where to look at ctx
	every    int
	err      error
}

// ReadRune says that the text is at its end when the context has ended.
func (r *endingReader) ReadRune() (rune, int, error) {
	if r.at >= r.next && r.err == nil {
		r.err, r.next = r.ctx.Err(), r.at+r.every
	}
	if r.err != nil || r.at == len(r.text) {
		return 0, 0, io.EOF
	}
	char, n := utf8.DecodeRune(r.text[r.at:])
	r.at += n
	return char, n, nil
}

// start searches the file or folder a path leads to.
func (s *search) start(ctx context.Context, root *os.Root, name string) error {
	p, err := s.files.find(ctx, root, name, want{})
	if err != nil {
		return err
	}
	defer p.close()
	switch {
	case p.info == nil:
		return fs.ErrNotExist
	case !p.info.IsDir():
		if err := checkRegular(p.info); err != nil {
			return err
		}
		return s.file(ctx, p)
	}
	dir, err := s.files.enterPlace(p)
	if err != nil {
		return err
	}
	defer dir.Close()
	return s.dir(ctx, dir.Root, dir.rel, "", MaxSearchDepth)
}

// dir searches a folder. rel is its path in the workspace, below its path from
// where the search began.
func (s *search) dir(ctx context.Context, dir *os.Root, rel, below string, depth int) error {
	names, err := readNames(ctx, dir)
	if err != nil {
		return err
	}
	g := guardOf(ctx)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !g.sees(path.Join(rel, name)) {
			continue
		}
		info, err := dir.Lstat(name)
		switch {
		case err != nil: // gone since the names were read
		case info.IsDir() && name != ".git":
			err = s.subdir(ctx, dir, info, path.Join(rel, name), path.Join(below, name), depth-1)
		case info.Mode().IsRegular() && s.include.Match(path.Join(below, name)):
			err = s.fileOfFolder(ctx, &target{dir: dir, name: name, rel: path.Join(rel, name), info: info})
		}
		// Reports whether an error ends the whole search. A file that can't be read
		// is passed over.
		if err != nil && (errors.Is(err, errEnough) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
			return err
		}
	}
	return nil
}

func (s *search) subdir(ctx context.Context, parent *os.Root, seen fs.FileInfo, rel, below string, depth int) error {
	if depth == 0 {
		s.truncated = true
		return nil
	}
	dir, err := s.files.openDir(parent, seen.Name(), seen)
	if err != nil {
		return err
	}
	defer dir.Close()
	return s.dir(ctx, dir, rel, below, depth)
}

// fileOfFolder searches a regular file, unless it is too long or binary.
func (s *search) fileOfFolder(ctx context.Context, p *target) error {
	if s.seenFiles++; s.seenFiles > MaxSearchFiles {
		return s.enough()
	}
	if p.info.Size() > MaxSearchFileBytes {
		if s.passedOver++; s.passedOver == 1 {
			s.firstOver = text.Valid(p.rel)
		}
		s.truncated = true
		return nil
	}
	return s.file(ctx, p)
}

// file searches one regular file, unless it is binary.
func (s *search) file(ctx context.Context, p *target) error {
	file, _, err := openRegular(p, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer file.Close()
	s.block.Reset(file)
	return s.lines(ctx, text.Valid(p.rel))
}

func (s *search) enough() error {
	s.truncated = true
	return errEnough
}

// sniffBytes is how much of a file's start decides whether it is binary.
const sniffBytes = 8 << 10

func (s *search) lines(ctx context.Context, rel string) error {
	head, err := s.block.Peek(sniffBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if bytes.IndexByte(head, 0) >= 0 {
		return nil // it is binary
	}
	number, matched := int64(1), false
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		piece, err := s.block.ReadSlice('\n')
		if s.seenBytes += int64(len(piece)); s.seenBytes > MaxSearchBytes {
			return s.enough()
		}
		line := bytes.TrimRight(piece, "\r\n")
		if len(piece) > 0 && !matched {
			var failed error
			if matched, failed = s.match(ctx, line); failed != nil {
				return failed
			}
			if matched {
				if err := s.found(rel, number, line); err != nil {
					return err
				}
			}
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		number, matched = number+1, false
	}
}

// found adds a match, or ends the search when there are enough.
func (s *search) found(rel string, number int64, line []byte) error {
	if len(s.matches) >= s.limit {
		return s.enough()
	}
	if len(line) > MaxMatchBytes {
		line = line[:MaxMatchBytes]
	}
	s.matches = append(s.matches, map[string]any{
		"path": rel,
		"line": number,
		"text": text.Valid(string(text.WholeChars(line))),
	})
	return nil
}
