//go:build cgo && !norocksdb

package rockskv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/folder"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/mark"
)

// The marker's parts.
const (
	markerName  = "LOOM-FORMAT"
	markerTemp  = markerName + ".tmp"
	markerTitle = "loom-bridge store"
	// markedFormat is the first one whose stores have a mark.
	markedFormat = 2
	// markerCreating is a third line while the database is being made. What is
	// in the directory then was never handed to anybody.
	markerCreating = "state creating"
	// markerFilling begins a third line while another store is copied into this one.
	// The name of that store follows, quoted.
	markerFilling = "state filling from "
	// maxMarkerBytes is far more than any marker needs.
	maxMarkerBytes = 4 << 10
)

// makingState is how far the making of a store has come.
type makingState int

const (
	absent   makingState = iota // an empty directory
	creating                    // marked, the database unfinished
	filling                     // marked, another store is being copied into it
	ready                       // in use
)

// findings are what a directory holds.
type findings struct {
	state  makingState
	format uint64
	from   string // the store that a filling one is copied from
}

// inspect says what dir holds, in which format, and changes nothing in it. A
// directory that is no store is an ErrForeign, one with a mark but no marker an
// ErrDamaged.
func inspect(dir string) (findings, error) {
	text, err := readMarker(dir)
	if err == nil {
		return parseMarker(text)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return findings{}, fmt.Errorf("read %s: %w", markerName, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return findings{}, err
	}
	foreign := ""
	for _, e := range entries {
		switch name := e.Name(); {
		case name == mark.Name:
			problem := "is missing, but " + mark.Name + " is there"
			return findings{}, &kv.DamageError{File: markerName, Problem: problem, Keyspace: kv.WholeStore}
		case foreign == "" && !harmless(name):
			foreign = name
		}
	}
	if foreign != "" {
		return findings{}, fmt.Errorf("%w: no %s, but %s", kv.ErrForeign, markerName, foreign)
	}
	return findings{}, nil
}

// harmless names may lie in a directory that becomes a store: a marker that a
// crash left half written, and what a fresh file system brings along.
func harmless(name string) bool { return name == markerTemp || name == "lost+found" }

func readMarker(dir string) (string, error) {
	path := filepath.Join(dir, markerName)
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > maxMarkerBytes {
		return "", fmt.Errorf("%w: %s is not a marker", kv.ErrDamaged, markerName)
	}
	text, err := os.ReadFile(path)
	return string(text), err
}

// parseMarker reads a marker. Lines after the format belong to the format, so
// a newer one is recognized whatever follows.
func parseMarker(text string) (findings, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) < 2 || lines[0] != markerTitle {
		return findings{}, fmt.Errorf("%w: %s does not begin with %q", kv.ErrDamaged, markerName, markerTitle)
	}
	number, _ := strings.CutPrefix(lines[1], "format ")
	found, err := strconv.ParseUint(number, 10, 32)
	switch {
	case err != nil || found == 0:
		return findings{}, fmt.Errorf("%w: %s has no format number", kv.ErrDamaged, markerName)
	case found > kv.Format:
		return findings{}, fmt.Errorf("%w: format %d, this program reads %d", kv.ErrNewer, found, kv.Format)
	case len(lines) == 2:
		return findings{state: ready, format: found}, nil
	case slices.Equal(lines[2:], []string{markerCreating}):
		return findings{state: creating, format: found}, nil
	}
	if quoted, ok := strings.CutPrefix(lines[2], markerFilling); ok && len(lines) == 3 {
		if from, err := strconv.Unquote(quoted); err == nil {
			return findings{filling, found, from}, nil
		}
	}
	return findings{}, fmt.Errorf("%w: %s has more lines than format %d", kv.ErrDamaged, markerName, found)
}

// admits returns an error unless a store in that state may be opened: to be filled from
// another one, unless that is empty, and otherwise to be used.
func (f findings) admits(fill string) error {
	switch {
	case fill == "" && f.state == filling, fill != "" && f.state == filling && f.from != fill:
		return fmt.Errorf("%w, %s", kv.ErrUnfinished, f.from)
	case fill != "" && (f.state == ready || f.state == creating):
		return kv.ErrOccupied
	}
	return nil
}

// writeMarker puts a marker of state s in place, whole or not at all, and
// returns when that is on disk.
func writeMarker(dir string, s makingState, from string) error {
	text := fmt.Sprintf("%s\nformat %d\n", markerTitle, kv.Format)
	switch s {
	case creating:
		text += markerCreating + "\n"
	case filling:
		text += markerFilling + strconv.Quote(from) + "\n"
	}
	temp := filepath.Join(dir, markerTemp)
	if err := writeSynced(temp, text); err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(dir, markerName)); err != nil {
		return err
	}
	return folder.Sync(dir)
}

func writeSynced(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// makeDir makes dir and its parents, for the owner alone and durably.
func makeDir(dir string) error {
	parent := filepath.Dir(dir)
	if _, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) && parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return folder.Sync(parent)
}
