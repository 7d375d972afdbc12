//go:build cgo && !norocksdb

package rockskv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/folder"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/mark"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv/internal/rocksfile"
)

// damagedPrefix begins the names of directories of damaged files.
const damagedPrefix = "damaged-"

// Repair makes a store open again whose logs or whose mark are damaged. It keeps every
// commit before the damage and loses everything behind it. The files that it changes are
// copied first. A store whose manifest, tables or blob files are damaged is left as it is,
// with that *kv.DamageError; an undamaged store gives ErrNotDamaged. No other process may
// have the store open.
//
// Commits of which a part had reached the tables before may come out in one keyspace
// and not in the other.
func Repair(dir string, now time.Time) (Repaired, error) {
	s, err := lockStore(dir)
	if err != nil {
		return Repaired{}, fmt.Errorf("repair store %s: %w%s", dir, err, adviceToReader(err))
	}
	done, err := s.repair(now)
	if err = errors.Join(err, folder.Unlock(s.lock)); err != nil {
		return done, fmt.Errorf("repair store %s: %w", dir, err)
	}
	return done, nil
}

func (s lockedStore) repair(now time.Time) (Repaired, error) {
	damage, err := s.damage()
	if err != nil {
		return Repaired{}, err
	}
	done := Repaired{Damage: damage}
	number, err := rocksfile.Current(s.dir)
	if err != nil {
		return done, err
	}
	manifest, err := rocksfile.ReadManifest(s.dir, number)
	if err != nil {
		return done, err
	}
	logs, err := neededLogs(s.dir, manifest)
	if err != nil {
		return done, err
	}
	if done.Kept, err = s.keep(now); err != nil {
		return done, err
	}
	if err := s.cut(manifest, logs, &done); err != nil {
		return done, err
	}
	if err := errors.Join(folder.Sync(s.dir), markCopy(s.dir), writeMarker(s.dir, ready, "")); err != nil {
		return done, err
	}
	return done, verify(context.Background(), s.dir, true)
}

// damage returns the first damage of the store, all of which can be repaired.
func (s lockedStore) damage() (first *kv.DamageError, err error) {
	i := inspection{dir: s.dir, ctx: context.Background().Err, marked: s.marked}
	i.Found = func(damage *kv.DamageError) error {
		if !damage.Repairable {
			return fmt.Errorf("%w: only a backup can bring it back", damage)
		}
		if first == nil {
			first = damage
		}
		return nil
	}
	if err := i.run(); err != nil {
		return nil, err
	}
	if first == nil {
		return nil, ErrNotDamaged
	}
	return first, nil
}

// keep copies what a repair changes, and what says how it was, into a directory
// whose path it returns.
func (s lockedStore) keep(now time.Time) (string, error) {
	kept := filepath.Join(s.dir, damagedPrefix+now.UTC().Format("20060102T150405.000Z"))
	if err := os.Mkdir(kept, 0o700); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		name := e.Name()
		small := name == markerName || name == mark.Name || name == "CURRENT" || strings.HasPrefix(name, "MANIFEST-")
		if !small && !strings.HasSuffix(name, ".log") || e.IsDir() {
			continue
		}
		if err := copySynced(filepath.Join(kept, name), filepath.Join(s.dir, name)); err != nil {
			return "", err
		}
	}
	return kept, errors.Join(folder.Sync(kept), folder.Sync(s.dir))
}

func copySynced(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// cut ends the logs at the first place where something is missing.
func (s lockedStore) cut(manifest *rocksfile.Manifest, logs []uint64, done *Repaired) error {
	lengths := make(map[uint64]int64)
	m, err := mark.Read(s.dir)
	if err != nil && done.Damage.File != mark.Name {
		return err
	}
	firstMissing := ^uint64(0)
	for _, l := range m.Logs {
		lengths[l.Number] = l.Length
		name := rocksfile.LogName(l.Number)
		if _, err := os.Stat(filepath.Join(s.dir, name)); err != nil && l.Number >= manifest.FirstLog && l.Number < firstMissing {
			firstMissing = l.Number
			done.Cut, done.LostBytes = append(done.Cut, name), done.LostBytes+l.Length
		}
	}
	next, ended := uint64(0), false
	for _, number := range logs {
		if ended = ended || number > firstMissing; ended {
			if err := s.drop(number, 0, lengths[number], done); err != nil {
				return err
			}
			continue
		}
		i := inspection{dir: s.dir, ctx: context.Background().Err}
		log, err := i.log(number, lengths[number], next)
		if _, damaged := errors.AsType[*rocksfile.DamageError](err); err != nil && !damaged {
			return err
		}
		if ended = err != nil; ended {
			if err := s.drop(number, log.End, lengths[number], done); err != nil {
				return err
			}
		}
		next = log.Next
	}
	return nil
}

// drop cuts a log, which had a length once, at a place, or takes it away when nothing
// is before that.
func (s lockedStore) drop(number uint64, at, length int64, done *Repaired) error {
	name := rocksfile.LogName(number)
	path := filepath.Join(s.dir, name)
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	done.Cut, done.LostBytes = append(done.Cut, name), done.LostBytes+max(length, info.Size())-at
	if at == 0 {
		return os.Remove(path)
	}
	return os.Truncate(path, at)
}
