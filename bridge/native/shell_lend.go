package native

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
)

const (
	// maxLent bounds the stored results that one command finds as files.
	maxLent = 16
	// maxLentBytes bounds each of them.
	maxLentBytes = 64 << 20
)

// lendings are the stored results that lie in workspaces as files while commands run
// that name them.
type lendings struct {
	mu   sync.Mutex
	held map[lending]*lent // guarded by mu
}

type lending struct {
	root *os.Root
	path string
}

type lent struct {
	users   int
	folders []string // that were made for it, the deepest last
}

// lend puts the stored results that words name into the workspace, as read-only files
// under those names, never over something that is there. The result takes them away.
func (s *shell) lend(ctx context.Context, c tools.Input, cwd string, words []string) (giveBack func(), err error) {
	var places []lending
	giveBack = func() {
		for _, place := range places {
			s.lent.giveBack(place)
		}
	}
	for _, word := range words {
		place, entry, ok := s.named(ctx, c, cwd, word)
		if !ok || len(places) == maxLent || slices.Contains(places, place) {
			continue
		}
		put, err := s.lent.take(place, func() ([]string, error) { return s.put(ctx, c, place, entry) })
		if err != nil {
			giveBack()
			return nil, err
		}
		if put {
			places = append(places, place)
		}
	}
	return giveBack, nil
}

// named reports whether a word names something stored, and where a command looks for it.
func (s *shell) named(ctx context.Context, c tools.Input, cwd, word string) (lending, blob.Entry, bool) {
	if s.files.blobs == nil || word == "" || strings.HasPrefix(word, "-") || len(word) > MaxPathBytes {
		return lending{}, blob.Entry{}, false
	}
	rel, ok := inside(c.Root, word)
	if !ok || !namesStored(rel) && !hasFolder(rel, "workspace/outputs/", "workspace/history/", blob.ResultsFolder) {
		return lending{}, blob.Entry{}, false
	}
	entry, err := s.files.blobs.Lookup(ctx, c.Scope, c.SessionID, rel)
	if err != nil || entry.Size > maxLentBytes {
		return lending{}, blob.Entry{}, false
	}
	if !path.IsAbs(word) {
		rel = path.Join(cwd, rel)
	}
	return lending{c.Root, rel}, entry, true
}

// put writes one as a file, and returns the folders that were made.
func (s *shell) put(ctx context.Context, c tools.Input, place lending, entry blob.Entry) (made []string, err error) {
	defer func() {
		if err != nil {
			removeFolders(place.root, made)
		}
	}()
	parts := strings.Split(place.path, "/")
	for i := 1; i < len(parts); i++ {
		folder := strings.Join(parts[:i], "/")
		switch err := place.root.Mkdir(folder, 0o755); {
		case err == nil:
			made = append(made, folder)
		case !errors.Is(err, fs.ErrExist):
			return made, failure(place.path, err)
		}
	}
	file, err := place.root.OpenFile(place.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return made, err
	}
	for piece, readErr := range s.files.blobs.Read(ctx, c.Scope, entry, 0, -1) {
		if err = readErr; err == nil {
			_, err = file.Write(piece)
		}
		if err != nil {
			break
		}
	}
	if err = errors.Join(err, file.Close()); err != nil {
		_ = place.root.Remove(place.path) // the error that led here says more
		return made, storedFailure(place.path, err)
	}
	return made, nil
}

// take counts a user of a lending in; the first one puts it there. It is not taken where
// something of its name is there already.
func (l *lendings) take(place lending, put func() ([]string, error)) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held, ok := l.held[place]; ok {
		held.users++
		return true, nil
	}
	folders, err := put()
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if l.held == nil {
		l.held = map[lending]*lent{}
	}
	l.held[place] = &lent{users: 1, folders: folders}
	return true, nil
}

// giveBack counts a user out; the last one takes the file away.
func (l *lendings) giveBack(place lending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.held[place]
	if held.users--; held.users > 0 {
		return
	}
	delete(l.held, place)
	_ = place.root.Remove(place.path) // the command may have removed it
	removeFolders(place.root, held.folders)
}

// removeFolders removes the empty folders.
func removeFolders(root *os.Root, folders []string) {
	for _, folder := range slices.Backward(folders) {
		_ = root.Remove(folder) // something else may lie in it by now
	}
}
