package native

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash/maphash"
	"io/fs"
	"os"
	"strings"
	"sync"
	"syscall"

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
	for range maxRaces {
		written, err := f.write(ctx, c.Root, name, []byte(content), c.Bool("append"))
		if err == nil {
			return tools.Output{
				Values:  map[string]any{"success": true, "path": name, "bytes_written": int64(len(content))},
				Written: written,
			}, nil
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

func (f *files) write(ctx context.Context, root *os.Root, name string, content []byte, add bool) (*tools.Written, error) {
	p, err := f.find(ctx, root, name, want{parents: true})
	if err != nil {
		return nil, err
	}
	defer p.close()
	defer f.locks.lock(p.rel)()
	if err := p.look(); err != nil {
		return nil, err
	}
	if p.info != nil {
		if err := checkRegular(p.info); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if add && p.info != nil {
		return appendTo(ctx, p, content)
	}
	if err := replace(p, content); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	return &tools.Written{File: p.rel, SHA256: hex.EncodeToString(sum[:])}, nil
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
	if err := fill(file, p.info, content); err != nil {
		return err
	}
	if err := p.dir.Rename(temp, p.name); err != nil {
		return err
	}
	return syncDir(p.dir)
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

// appendTo writes at the end of a file that is there. If that can't be
// finished, the file is made as long as it was.
func appendTo(ctx context.Context, p *target, content []byte) (*tools.Written, error) {
	file, before, err := openRegular(p, os.O_RDWR|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err = file.Write(content); err == nil {
		err = file.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, file.Truncate(before.Size()))
	}
	written := &tools.Written{File: p.rel}
	if before.Size()+int64(len(content)) <= MaxReadBytes {
		if _, err := file.Seek(0, 0); err == nil {
			written.SHA256, _ = hash(ctx, file) // unknown is as good as not computed
		}
	}
	return written, nil
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
