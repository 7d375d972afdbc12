package syncs

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/writer"
	"github.com/loom-bridge/loom-bridge/server/cmd/loom-bridge-server/formats"
)

const (
	// maxFileBytes bounds a note; a longer file is left alone.
	maxFileBytes = 1 << 20
	// maxFiles bounds the notes of a folder.
	maxFiles = 200_000
	// lookEvery is how often a followed folder is looked at.
	lookEvery = 2 * time.Second
	// partial begins the names of files that are being written.
	partial = ".sync-"
)

// notes is a folder with a note for each record.
type notes struct {
	root *os.Root
	tell func(tale)

	mu sync.Mutex
	// paths are where the notes of records are.
	paths map[string]string
	// before is what look said before the last changes.
	before string
	// told are the files that were left alone, and why, so that it is told once.
	told map[string]string
}

// openNotes opens a folder, in which the notes of known records are where paths says.
func openNotes(dir string, paths map[string]string, tell func(tale)) (*notes, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) { // one that is mistyped would be taken for one without notes
		return nil, fmt.Errorf("--folder: there is no %s; make it first", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("--folder: %w", err)
	}
	return &notes{root: root, tell: tell, paths: paths, told: make(map[string]string)}, nil
}

func (n *notes) name() string { return "in the folder" }

func (n *notes) close() error { return n.root.Close() }

// errChanging: a file was written while it was read.
var errChanging = errors.New("it changes while it is read")

// read reads a file, again where it changes meanwhile.
func (n *notes) read(at string) (text []byte, changed time.Time, err error) {
	for range tries {
		before, err := n.root.Lstat(at)
		if err != nil {
			return nil, changed, err
		}
		switch {
		case !before.Mode().IsRegular():
			return nil, changed, errors.New("it is no regular file")
		case before.Size() > maxFileBytes:
			return nil, changed, fmt.Errorf("it has %d bytes, more than %d", before.Size(), maxFileBytes)
		}
		file, err := n.root.Open(at)
		if err != nil {
			return nil, changed, err
		}
		text, err = io.ReadAll(io.LimitReader(file, maxFileBytes+1))
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, changed, err
		}
		after, err := n.root.Lstat(at)
		if err != nil {
			return nil, changed, err
		}
		if os.SameFile(before, after) && after.ModTime().Equal(before.ModTime()) && after.Size() == int64(len(text)) {
			return text, after.ModTime(), nil
		}
	}
	return nil, changed, errChanging
}

// parse is a note as an entry.
func parse(at string, text []byte, changed time.Time) (entry, error) {
	line, err := formats.ReadNote(text, "note-"+digest([]byte(at)))
	if err != nil {
		return entry{}, err
	}
	l, err := record.ParseLine(line)
	if err != nil {
		return entry{}, err
	}
	l.Record.Writer = writer.Import
	e := entryOf(l.Record, digest(text), true)
	e.mark.Path, e.time = at, changed
	return e, nil
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

func (n *notes) changes(_ context.Context, _ string, _ int, unchanged func(id, hash string) bool) (changes, error) {
	found := changes{at: "read", whole: true, held: make(map[string]bool)}
	before, err := n.look()
	if err != nil {
		return found, err
	}
	n.before = before
	at := make(map[string]int) // of each id, in found
	n.mu.Lock()
	defer n.mu.Unlock()
	known := make(map[string]string)
	for id, path := range n.paths {
		known[path] = id
	}
	alone, files := make(map[string]string), 0
	leave := func(path, why string) {
		if n.told[path] != why {
			n.tell(tale{Event: "left alone", ID: known[path], Text: fmt.Sprintf("%s: %s", path, why)})
		}
		if alone[path] = why; known[path] != "" {
			found.held[known[path]] = true
		}
	}
	err = fs.WalkDir(n.root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && path == ".":
			return err
		case err != nil:
			return fmt.Errorf("the folder can't be read: %w", err) // and what is in there is not gone
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case strings.HasPrefix(d.Name(), partial):
			n.sweep(path)
			return nil
		case d.IsDir(), !strings.HasSuffix(strings.ToLower(d.Name()), ".md"), strings.HasPrefix(d.Name(), "."):
			return nil
		}
		if files++; files > maxFiles {
			return fmt.Errorf("the folder has more than %d notes", maxFiles)
		}
		text, changed, err := n.read(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		var e entry
		if err == nil {
			e, err = parse(path, text, changed)
		}
		if err != nil {
			leave(path, err.Error())
			return nil
		}
		if i, ok := at[e.id]; ok {
			other := &found.entries[i]
			if n.paths[e.id] == path {
				*other, e = e, *other
			}
			leave(e.mark.Path, fmt.Sprintf("it has the loom_id of %s", other.mark.Path))
			return nil
		}
		if unchanged(e.id, e.hash) {
			e.record = record.Record{ID: e.id}
		}
		at[e.id] = len(found.entries)
		found.entries = append(found.entries, e)
		return nil
	})
	for _, e := range found.entries {
		n.paths[e.id] = e.mark.Path
	}
	n.told = alone
	return found, err
}

// sweep removes a file that a run which was killed has left half written.
func (n *notes) sweep(path string) {
	if info, err := n.root.Lstat(path); err == nil && time.Since(info.ModTime()) > time.Hour {
		_ = n.root.Remove(path) // the next one tries again
	}
}

// now is the note of a record as it is.
func (n *notes) now(id string) (e entry, text []byte, err error) {
	n.mu.Lock()
	at, ok := n.paths[id]
	n.mu.Unlock()
	if !ok {
		return entry{id: id}, nil, nil
	}
	text, changed, err := n.read(at)
	if errors.Is(err, fs.ErrNotExist) {
		return entry{id: id}, nil, nil
	}
	if err == nil {
		e, err = parse(at, text, changed)
	}
	if err == nil && e.id != id {
		return entry{id: id}, nil, nil
	}
	if err != nil {
		return e, nil, &refusedError{fmt.Sprintf("%s: %v", at, err)}
	}
	return e, text, nil
}

func (n *notes) get(_ context.Context, id string) (entry, error) {
	e, _, err := n.now(id)
	return e, err
}

// write writes a note beside where it is to be, and puts it there.
func (n *notes) write(at string, text []byte, place func(from, to string) error) (entry, error) {
	const private, privateDir = 0o600, 0o700
	if err := n.root.MkdirAll(path.Dir(at), privateDir); err != nil {
		return entry{}, err
	}
	from := path.Join(path.Dir(at), partial+rand.Text())
	file, err := n.root.OpenFile(from, os.O_WRONLY|os.O_CREATE|os.O_EXCL, private)
	if err != nil {
		return entry{}, err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err == nil {
		err = place(from, at)
	}
	if gone := n.root.Remove(from); err == nil && gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = gone
	}
	if err != nil {
		return entry{}, err
	}
	e, err := parse(at, text, time.Now())
	if err != nil {
		return e, &refusedError{fmt.Sprintf("%s: %v", at, err)}
	}
	n.mu.Lock()
	n.paths[e.id] = at
	n.mu.Unlock()
	return e, nil
}

func (n *notes) create(_ context.Context, r record.Record) (entry, error) {
	e, _, err := n.now(r.ID)
	if err != nil {
		return e, err
	}
	if e.state != absent {
		return e, errMoved
	}
	at, text, err := formats.WriteNote(r)
	if err != nil {
		return entry{}, &refusedError{err.Error()}
	}
	e, err = n.write(at, text, func(from, to string) error {
		err := n.root.Link(from, to)
		if err == nil || errors.Is(err, fs.ErrExist) {
			return err
		}
		if _, there := n.root.Lstat(to); there == nil {
			return fs.ErrExist
		}
		return n.root.Rename(from, to) // there are no links
	})
	if errors.Is(err, fs.ErrExist) {
		return e, &refusedError{fmt.Sprintf("another file has the name %s", at)}
	}
	return e, err
}

func (n *notes) update(_ context.Context, was entry, r record.Record) (entry, error) {
	now, before, err := n.now(was.id)
	if err != nil {
		return now, err
	}
	if now.state == absent || now.mark.Stamp != was.mark.Stamp {
		return now, errMoved
	}
	_, text, err := formats.WriteNote(r)
	if err != nil {
		return now, &refusedError{err.Error()}
	}
	text = formats.KeepFront(text, before)
	return n.write(now.mark.Path, text, func(from, to string) error {
		if still, _, err := n.read(to); err != nil || !bytes.Equal(still, before) {
			return errMoved
		}
		return n.root.Rename(from, to)
	})
}

func (n *notes) remove(_ context.Context, was entry) error {
	now, _, err := n.now(was.id)
	switch {
	case err != nil:
		return err
	case now.state == absent:
		return nil
	case now.mark.Stamp != was.mark.Stamp:
		return errMoved
	}
	if err := n.root.Remove(now.mark.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	n.mu.Lock()
	delete(n.paths, was.id)
	n.mu.Unlock()
	return nil
}

// await waits until names, sizes or times of the files are not those from before the last round.
func (n *notes) await(ctx context.Context, _ string) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		now, err := n.look()
		if err != nil || now != n.before {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (n *notes) look() (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(n.root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if info, err := d.Info(); err == nil && !d.IsDir() {
			_, _ = fmt.Fprintf(sum, "%q %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		}
		return nil
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}
