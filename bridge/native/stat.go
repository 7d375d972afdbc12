package native

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

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
