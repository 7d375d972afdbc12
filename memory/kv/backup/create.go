package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/folder"
)

// Origin is a store that backups are made of. Engine and Staging are required.
type Origin struct {
	Engine kv.Checkpointer
	// Staging is a directory that does not exist, on the file system of the store. What a
	// crash leaves there the next backup removes.
	Staging string
	// StoreFormat and Version go into the manifest.
	StoreFormat int
	Version     string
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Plan says how a backup is made.
type Plan struct {
	// Full copies every file, including files that the previous backup has.
	Full bool
	// Keep is how many backups stay, this one included; zero for all.
	Keep int
	// Progress, unless nil, is called with how many bytes of how many are done.
	Progress func(done, total int64)
}

// Create makes a backup of everything that was acknowledged before the call, while the
// store serves. It returns ErrBusy while another one is made. When it fails, or ctx
// ends, nothing is left of the backup.
func (f *Folder) Create(ctx context.Context, s Origin, p Plan) (_ Backup, err error) {
	lock, err := f.lock()
	if err != nil {
		return Backup{}, err
	}
	defer func() { err = errors.Join(err, folder.Unlock(lock)) }()
	if err := errors.Join(f.clean(), os.RemoveAll(s.Staging)); err != nil {
		return Backup{}, err
	}
	now := s.Now
	if now == nil {
		now = time.Now
	}
	m := manifest{Format: manifestFormat, Backup: Backup{Time: now().UTC(), StoreFormat: s.StoreFormat, Version: s.Version}}
	if m.Name, err = f.free(m.Time); err != nil {
		return Backup{}, err
	}
	if err := s.Engine.Checkpoint(ctx, s.Staging); err != nil {
		return Backup{}, fmt.Errorf("backup: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.Staging)) }()
	partial := f.Path(m.Name) + partialSuffix
	if err := os.Mkdir(partial, 0o700); err != nil {
		return Backup{}, err
	}
	c := &copying{ctx: ctx, from: s.Staging, to: partial, progress: p.Progress}
	if !p.Full {
		c.have = f.newest()
	}
	if err := c.all(&m.Backup); err != nil {
		return Backup{}, errors.Join(fmt.Errorf("backup: %w", err), os.RemoveAll(partial))
	}
	if err := f.publish(partial, m); err != nil {
		return Backup{}, err
	}
	if p.Keep > 0 {
		if _, err := f.prune(p.Keep); err != nil {
			return m.Backup, err
		}
	}
	return m.Backup, nil
}

// free is the name for a backup of that time; a later one if it is taken.
func (f *Folder) free(at time.Time) (string, error) {
	for ; ; at = at.Add(time.Millisecond) {
		name := at.Format(nameForm)
		if _, err := os.Lstat(f.Path(name)); errors.Is(err, os.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
	}
}

// publish converts complete files into a backup.
func (f *Folder) publish(partial string, m manifest) error {
	written, err := m.encode()
	if err != nil {
		return err
	}
	if err := errors.Join(folder.Sync(partial), os.Rename(partial, f.Path(m.Name))); err != nil {
		return err
	}
	draft := f.manifestOf(m.Name) + partialSuffix
	if err := writeSynced(draft, written); err != nil {
		return err
	}
	// The directory first: a manifest promises that it is there.
	if err := folder.Sync(f.dir); err != nil {
		return err
	}
	return errors.Join(os.Rename(draft, f.manifestOf(m.Name)), folder.Sync(f.dir))
}

func writeSynced(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o400)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}

// newest are the files of the newest backup that never change, by where they came from.
func (f *Folder) newest() map[string]kept {
	names, err := f.names()
	if err != nil || len(names) == 0 {
		return nil
	}
	b, err := f.read(names[0])
	if err != nil {
		return nil // it is damaged, so nothing is taken from it
	}
	have := make(map[string]kept, len(b.Files))
	for _, file := range b.Files {
		if file.Source != "" {
			have[file.Source] = kept{File: file, path: filepath.Join(f.Path(b.Name), file.Name)}
		}
	}
	return have
}

// kept is a file that a backup has.
type kept struct {
	File
	path string
}

// copying copies the files of a checkpoint.
type copying struct {
	ctx         context.Context
	from, to    string
	have        map[string]kept
	progress    func(done, total int64)
	done, total int64
}

func (c *copying) all(b *Backup) error {
	entries, err := os.ReadDir(c.from)
	if err != nil {
		return err
	}
	infos := make([]os.FileInfo, len(entries))
	for i, e := range entries {
		if infos[i], err = e.Info(); err != nil {
			return err
		}
		if !infos[i].Mode().IsRegular() {
			return fmt.Errorf("%s is no file", filepath.Join(c.from, e.Name()))
		}
		c.total += infos[i].Size()
	}
	for _, info := range infos {
		file, isNew, err := c.one(info)
		if err != nil {
			return err
		}
		b.Files = append(b.Files, file)
		b.Bytes += file.Bytes
		if isNew {
			b.NewBytes += file.Bytes
		}
	}
	return nil
}

// one takes a file over, from the backup before if that has it.
func (c *copying) one(info os.FileInfo) (file File, isNew bool, err error) {
	file = File{Name: info.Name(), Source: sourceOf(info)}
	to := filepath.Join(c.to, file.Name)
	if old, ok := c.have[file.Source]; ok && file.Source != "" && old.Name == file.Name && old.Bytes == info.Size() && c.link(old, to) {
		file.Bytes, file.SHA256 = old.Bytes, old.SHA256
		c.report(old.Bytes)
		return file, false, nil
	}
	file.Bytes, file.SHA256, err = copyFile(c.ctx, filepath.Join(c.from, file.Name), to, 0o400, c.report)
	return file, true, err
}

// link takes over a file of another backup, if it is whole and can be linked.
func (c *copying) link(old kept, to string) bool {
	info, err := os.Lstat(old.path)
	return err == nil && info.Mode().IsRegular() && info.Size() == old.Bytes && os.Link(old.path, to) == nil
}

func (c *copying) report(bytes int64) {
	c.done += bytes
	if c.progress != nil {
		c.progress(c.done, max(c.total, c.done))
	}
}

// copyBytes is how much is copied at once, between two looks at the context.
const copyBytes = 1 << 20

// copyFile copies a file, syncs the copy, and returns its size and digest.
func copyFile(ctx context.Context, from, to string, mode os.FileMode, report func(int64)) (bytes int64, digest string, err error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, "", err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return 0, "", err
	}
	bytes, digest, err = digestOf(ctx, io.TeeReader(in, out), report)
	return bytes, digest, errors.Join(err, out.Sync(), out.Close())
}

// digestOf reads all there is.
func digestOf(ctx context.Context, from io.Reader, report func(int64)) (bytes int64, digest string, err error) {
	sum := sha256.New()
	for {
		n, err := io.CopyN(sum, from, copyBytes)
		bytes += n
		if report != nil && n > 0 {
			report(n)
		}
		if errors.Is(err, io.EOF) {
			return bytes, hex.EncodeToString(sum.Sum(nil)), ctx.Err()
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return bytes, "", err
		}
	}
}
