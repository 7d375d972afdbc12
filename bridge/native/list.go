package native

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
)

func (f *files) listDir(ctx context.Context, c tools.Input) (tools.Output, error) {
	name := c.String("path", ".")
	dir, err := f.findDir(ctx, c.Root, name)
	if err != nil {
		return tools.Output{}, err
	}
	defer dir.close()
	names, err := readNames(ctx, dir.Root)
	if err != nil {
		return tools.Output{}, failure(name, err)
	}
	g := guardOf(ctx)
	names = slices.DeleteFunc(names, func(one string) bool { return !g.sees(path.Join(dir.rel, one)) })
	entries, hidden, err := f.entries(ctx, dir.Root, names)
	if err != nil {
		return tools.Output{}, failure(name, err)
	}
	out := map[string]any{"path": name, "entries": entries}
	if len(names)-hidden > len(entries) {
		out["truncated"] = true
		out["total"] = int64(len(names) - hidden)
	}
	return tools.Output{Values: out}, nil
}

// folder is an open folder. Close it.
type folder struct {
	*os.Root
	rel   string
	close func()
}

// findDir finds and opens a folder.
func (f *files) findDir(ctx context.Context, root *os.Root, name string) (folder, error) {
	for range maxRaces {
		p, err := f.find(ctx, root, name, want{})
		if err != nil {
			return folder{}, err
		}
		dir, err := f.enterPlace(p)
		if err == nil {
			return dir, nil
		}
		p.close()
		if !errors.Is(err, errRaced) {
			return folder{}, failure(name, err)
		}
	}
	return folder{}, failure(name, errRaced)
}

func (f *files) enterPlace(p *target) (folder, error) {
	switch {
	case p.info == nil:
		return folder{}, fs.ErrNotExist
	case !p.info.IsDir():
		return folder{}, tools.Errorf(tools.Failed, "not a directory: %s", p.rel)
	}
	dir, err := f.openDir(p.dir, p.name, p.info)
	if err != nil {
		return folder{}, err
	}
	return folder{Root: dir, rel: p.rel, close: func() {
		_ = dir.Close() // only read from
		p.close()
	}}, nil
}

// namesAtOnce is how many names are read between looks at the context.
const namesAtOnce = 4096

// readNames returns the names in a folder, sorted.
func readNames(ctx context.Context, dir *os.Root) ([]string, error) {
	handle, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	var names []string
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		more, err := handle.Readdirnames(namesAtOnce)
		names = append(names, more...)
		if len(names) > MaxDirEntries {
			return nil, tools.Errorf(tools.TooLarge, "the folder has more than %d entries", MaxDirEntries)
		}
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return names, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// entries describes the first MaxListEntries names that are to be seen, and
// says how many were passed over. Links are not followed.
func (f *files) entries(ctx context.Context, dir *os.Root, names []string) (entries []any, hidden int, err error) {
	entries = make([]any, 0, min(len(names), MaxListEntries))
	for _, name := range names {
		if len(entries) == MaxListEntries {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		info, err := dir.Lstat(name)
		if err != nil || f.isStore(info) {
			hidden++ // it has gone since the names were read, or it is hidden
			continue
		}
		entries = append(entries, map[string]any{
			"name":   text.Valid(name),
			"is_dir": info.IsDir(),
			"size":   info.Size(),
		})
	}
	return entries, hidden, nil
}

func (f *files) stat(ctx context.Context, c tools.Input) (tools.Output, error) {
	name := c.String("path", "")
	p, err := f.find(ctx, c.Root, name, want{})
	if err != nil {
		return tools.Output{}, err
	}
	defer p.close()
	if p.info == nil {
		return tools.Output{}, failure(name, fs.ErrNotExist)
	}
	out := map[string]any{
		"path":          name,
		"is_dir":        p.info.IsDir(),
		"size":          p.info.Size(),
		"modified_time": p.info.ModTime().UTC().Format(time.RFC3339Nano),
		"mode":          p.info.Mode().String(),
	}
	if p.info.Mode().IsRegular() && p.info.Size() <= MaxReadBytes {
		sum, err := hashTarget(ctx, p)
		if err != nil {
			return tools.Output{}, failure(name, err)
		}
		out["sha256"] = sum
	}
	return tools.Output{Values: out}, nil
}

// hashTarget returns the SHA-256 of a regular file, in hex.
func hashTarget(ctx context.Context, p *target) (string, error) {
	file, _, err := openRegular(p, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer file.Close()
	return hash(ctx, file)
}

// hash returns the SHA-256 of what r holds, in hex.
func hash(ctx context.Context, r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, limited(ctx, r)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
