package syncs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv/folder"
)

// mark is what one side had of a record when both were last equal.
type mark struct {
	// Stamp is what the next change there must expect: a version, or the hash of a file.
	Stamp string `json:"s"`
	// Hash stands for the content.
	Hash string `json:"h"`
	// Path is the file, of a folder.
	Path string `json:"p,omitempty"`
}

// pair is what both sides had of a record when they were last equal.
type pair struct {
	Here  mark `json:"here"`
	There mark `json:"there"`
	// Expires is when it was to expire, in seconds since 1970; 0 for never.
	Expires int64 `json:"expires,omitempty"`
}

func (p *pair) expired(now time.Time) bool { return p.Expires > 0 && now.Unix() >= p.Expires }

// stateLine is a line of the file of a state. Later lines replace earlier ones.
type stateLine struct {
	// Between names both sides, in the first line.
	Between string `json:"between,omitempty"`
	ID      string `json:"id,omitempty"`
	// Pair is nil for a record that is forgotten.
	Pair *pair `json:"pair,omitempty"`
	// Pending: the record is looked at again in the next round.
	Pending bool `json:"pending,omitempty"`
	// At are the positions of both sides.
	At *[2]string `json:"at,omitempty"`
}

// state is what is known of both sides, in a file that lines are added to: a process that is
// killed leaves at most half a line, and what the lines do not say is found again by comparing.
// It is safe for concurrent use.
type state struct {
	path    string
	locked  *os.File // nil for a dry run
	mu      sync.Mutex
	file    *os.File // nil: nothing is written
	pairs   map[string]*pair
	pending map[string]bool
	at      [2]string
}

// openState reads a state, or begins one, and locks it until close. A dry one is not written.
func openState(path, between string, dry bool) (*state, error) {
	s := &state{path: path, pairs: make(map[string]*pair), pending: make(map[string]bool)}
	if !dry {
		if err := s.lock(); err != nil {
			return nil, err
		}
	}
	file, err := os.Open(path)
	if err == nil {
		if err = s.read(file, between); err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
		err = errors.Join(err, file.Close())
	} else if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err == nil && !dry {
		err = s.compact(between)
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// lock locks a file beside that of the state, which is written anew under its name.
func (s *state) lock() (err error) {
	const private, privateDir = 0o600, 0o700
	if err := os.MkdirAll(filepath.Dir(s.path), privateDir); err != nil {
		return err
	}
	if s.locked, err = os.OpenFile(s.path+".lock", os.O_RDWR|os.O_CREATE, private); err != nil {
		return err
	}
	if err := folder.Lock(s.locked); err != nil {
		return errors.Join(fmt.Errorf("another sync of the same memories is running (%s): %w", s.path, err), s.locked.Close())
	}
	return nil
}

func (s *state) read(from io.Reader, between string) error {
	in := bufio.NewReader(from)
	for first := true; ; first = false {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // what has no end was being written at a kill
		}
		if err != nil {
			return err
		}
		var l stateLine
		switch err := json.Unmarshal(text, &l); {
		case err != nil:
			return fmt.Errorf("it is no state of a sync, or damaged (%w); without it all records are compared anew", err)
		case first && l.Between != between:
			return fmt.Errorf("it is of other memories: %s", l.Between)
		case l.At != nil:
			s.at = *l.At
		case l.ID != "":
			s.keep(l.ID, l.Pair, l.Pending)
		}
	}
}

func (s *state) keep(id string, p *pair, pending bool) {
	if s.pairs[id] = p; p == nil {
		delete(s.pairs, id)
	}
	if s.pending[id] = pending; !pending {
		delete(s.pending, id)
	}
}

// compact writes the file anew, which has its name when it is whole.
func (s *state) compact(between string) error {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	err := lines.Encode(stateLine{Between: between})
	for id, p := range s.pairs {
		err = errors.Join(err, lines.Encode(stateLine{ID: id, Pair: p, Pending: s.pending[id]}))
	}
	for id := range s.pending {
		if s.pairs[id] == nil {
			err = errors.Join(err, lines.Encode(stateLine{ID: id, Pending: true}))
		}
	}
	if err = errors.Join(err, lines.Encode(stateLine{At: &s.at})); err != nil {
		return err
	}
	const private = 0o600
	if s.file, err = os.OpenFile(s.path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, private); err != nil {
		return err
	}
	if _, err = s.file.Write(b.Bytes()); err == nil {
		err = errors.Join(s.file.Sync(), os.Rename(s.path+".new", s.path))
	}
	return err
}

// known is what is known of a record.
func (s *state) known(id string) (p *pair, pending bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pairs[id], s.pending[id]
}

// note keeps what is known of a record from now on.
func (s *state) note(id string, p *pair, pending bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.pairs[id]; s.pending[id] == pending && (was == nil) == (p == nil) && (p == nil || *was == *p) {
		return nil
	}
	s.keep(id, p, pending)
	return s.add(stateLine{ID: id, Pair: p, Pending: pending})
}

// reached notes the positions up to which all changes are done, and syncs the file.
func (s *state) reached(at [2]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == at {
		return nil
	}
	s.at = at
	if err := s.add(stateLine{At: &at}); err != nil || s.file == nil {
		return err
	}
	return s.file.Sync()
}

func (s *state) add(l stateLine) error {
	if s.file == nil {
		return nil
	}
	text, err := json.Marshal(l)
	if err == nil {
		_, err = s.file.Write(append(text, '\n'))
	}
	return err
}

func (s *state) close() (err error) {
	if s.file != nil {
		err = s.file.Close()
	}
	if s.locked != nil {
		err = errors.Join(err, folder.Unlock(s.locked))
	}
	return err
}
