package native

import (
	"context"
	"crypto/rand"
	"errors"
	"hash/maphash"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/bridge/native/charset"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

func (f *files) writeFile(ctx context.Context, c tools.Input) (tools.Output, error) {
	name, content := c.String("path", ""), c.String("content", "")
	if len(content) > MaxWriteBytes {
		return tools.Output{}, tools.Errorf(tools.TooLarge, "content of %d bytes exceeds the limit of %d", len(content), MaxWriteBytes)
	}
	if strings.HasSuffix(name, "/") {
		return tools.Output{}, f.refuseFolder(ctx, c.Root, name)
	}
	encoding, err := encodingOf(c)
	if err != nil {
		return tools.Output{}, err
	}
	w := writing{
		name: name, text: content, encoding: encoding, add: c.Bool("append"),
		expected: strings.ToLower(c.String("expected_sha256", "")),
	}
	for range maxRaces {
		out, err := f.write(ctx, c.Root, w)
		if err == nil {
			return out, nil
		}
		if !errors.Is(err, errRaced) {
			return tools.Output{}, failure(name, err)
		}
	}
	return tools.Output{}, failure(name, errRaced)
}

// refuseFolder says why nothing is written to a path that can only be a
// folder's.
func (f *files) refuseFolder(ctx context.Context, root *os.Root, name string) error {
	p, err := f.find(ctx, root, name, want{})
	if err != nil {
		return err
	}
	p.close()
	return failure(name, syscall.EISDIR)
}

// writing is what a call writes.
type writing struct {
	name, text string
	encoding   *charset.Encoding // nil: UTF-8, and that of the file where text is added
	add        bool
	expected   string // hash of the file as the caller saw it; empty for any
}

func (f *files) write(ctx context.Context, root *os.Root, w writing) (tools.Output, error) {
	p, err := f.find(ctx, root, w.name, want{parents: w.expected == ""})
	if err != nil {
		return tools.Output{}, err
	}
	defer p.close()
	defer f.locks.lock(p.rel)()
	if err := p.look(); err != nil {
		return tools.Output{}, err
	}
	if p.info != nil {
		if err := checkRegular(p.info); err != nil {
			return tools.Output{}, err
		}
	}
	if err := w.check(ctx, p); err != nil {
		return tools.Output{}, err
	}
	if err := ctx.Err(); err != nil {
		return tools.Output{}, err
	}
	content, written, err := w.put(ctx, p)
	if err != nil {
		return tools.Output{}, err
	}
	out := map[string]any{"success": true, "path": w.name, "bytes_written": int64(len(content))}
	if w.expected != "" {
		out["sha256"] = written.SHA256
	}
	return tools.Output{Values: out, Written: written}, nil
}

// check compares the file with what the caller saw of it.
func (w writing) check(ctx context.Context, p *target) error {
	if w.expected == "" {
		return nil
	}
	sum, err := hashTarget(ctx, p)
	if err == nil && sum != w.expected {
		err = changed(w.name, sum)
	}
	if err != nil {
		return err
	}
	return p.same()
}

// put writes at a target, and returns the bytes.
func (w writing) put(ctx context.Context, p *target) ([]byte, *tools.Written, error) {
	if w.add && p.info != nil && p.info.Size() > 0 {
		return w.append(ctx, p)
	}
	content := []byte(w.text)
	if w.encoding != nil {
		var err error
		if content, err = w.encoding.Encode(w.text); err != nil {
			return nil, nil, tools.Errorf(tools.Failed, "%s: %s", w.name, err)
		}
	}
	if err := hasRoom(ctx, p, len(content)); err != nil {
		return nil, nil, err
	}
	if err := replace(p, content); err != nil {
		return nil, nil, err
	}
	return content, &tools.Written{File: p.rel, SHA256: sha256Of(content)}, nil
}

// hasRoom returns an error if the call may not put so many bytes at a target, in place of
// what is there.
func hasRoom(ctx context.Context, p *target, size int) error {
	if p.info == nil {
		return guardOf(ctx).room.Check(1, int64(size))
	}
	return guardOf(ctx).room.Check(0, int64(size)-p.info.Size())
}

// look looks again at what is at the target, which may have changed while
// another write was waited for.
func (p *target) look() error {
	info, err := p.dir.Lstat(p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		info = nil
	case err != nil:
		return err
	case info.Mode().Type() == fs.ModeSymlink:
		return errRaced
	}
	p.info = info
	return nil
}

// replace puts a new file at a target in one step: it is written and synced
// under another name first. What was there stays whole until then.
func replace(p *target, content []byte) (err error) {
	temp := ".loom-tmp-" + rand.Text()
	file, err := p.dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = p.dir.Remove(temp) // the error that led here says more
		}
	}()
	if err := p.own(file); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := fill(file, p.info, content); err != nil {
		return err
	}
	if err := p.dir.Rename(temp, p.name); err != nil {
		return err
	}
	return syncDir(p.dir)
}

// own gives a new file the owner of the one that it replaces, else that of its folder: a
// server that runs as root runs the programs of tools as the owner of the workspace.
func (p *target) own(file *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	owner := p.info
	if owner == nil {
		var err error
		if owner, err = p.dir.Stat("."); err != nil {
			return err
		}
	}
	if stat, ok := owner.Sys().(*syscall.Stat_t); ok && (stat.Uid != 0 || stat.Gid != 0) {
		return file.Chown(int(stat.Uid), int(stat.Gid))
	}
	return nil
}

// fill writes, syncs and closes a new file that takes the place of old.
func fill(file *os.File, old fs.FileInfo, content []byte) error {
	_, err := file.Write(content)
	if err == nil && old != nil {
		err = file.Chmod(old.Mode().Perm())
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func syncDir(dir *os.Root) error {
	handle, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(handle.Sync(), handle.Close())
}

// append writes at the end of a file that is there, in its encoding. If that can't be
// finished, the file is made as long as it was.
func (w writing) append(ctx context.Context, p *target) ([]byte, *tools.Written, error) {
	file, before, err := openRegular(p, os.O_RDWR|os.O_APPEND)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	content, err := w.more(file, before.Size())
	if err != nil {
		return nil, nil, err
	}
	if err := guardOf(ctx).room.Check(0, int64(len(content))); err != nil {
		return nil, nil, err
	}
	if _, err = file.Write(content); err == nil {
		err = file.Sync()
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Truncate(before.Size()))
	}
	written := &tools.Written{File: p.rel}
	if before.Size()+int64(len(content)) <= MaxReadBytes {
		if _, err := file.Seek(0, 0); err == nil {
			written.SHA256, _ = hash(ctx, file) // unknown is as good as not computed
		}
	}
	return content, written, nil
}

// more returns the text as bytes to append to a file.
func (w writing) more(file *os.File, size int64) ([]byte, error) {
	e := w.encoding
	if e == nil {
		found, err := detect(file, size)
		if err != nil {
			return nil, err
		}
		e = &found
	}
	if e.Guessed() && strings.ContainsFunc(w.text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return nil, tools.Errorf(tools.Failed, "%s seems to be %s, but nothing in it says so: name its encoding", w.name, e.Name())
	}
	content, err := e.EncodeMore(w.text)
	if err != nil {
		return nil, tools.Errorf(tools.Failed, "%s: %s", w.name, err)
	}
	return content, nil
}

// pathLocks make writes to one path wait for each other, so that an append that
// is undone does not take another one with it. Paths may share a lock.
type pathLocks struct {
	seed  maphash.Seed
	locks [64]sync.Mutex
}

// lock waits for a path and returns what gives it free.
func (l *pathLocks) lock(rel string) (unlock func()) {
	m := &l.locks[maphash.String(l.seed, rel)%uint64(len(l.locks))]
	m.Lock()
	return m.Unlock
}
