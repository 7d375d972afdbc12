package native

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

func (f *files) delete(ctx context.Context, c tools.Input) (tools.Output, error) {
	name := c.String("path", "")
	if err := f.checkTarget(ctx, c, name); err != nil {
		return tools.Output{}, err
	}
	p, err := f.find(ctx, c.Root, name, want{noFollow: true})
	if err != nil {
		return tools.Output{}, err
	}
	defer p.close()
	switch {
	case p.info == nil:
		return tools.Output{}, failure(name, fs.ErrNotExist)
	case p.name == ".":
		return tools.Output{}, tools.Errorf(tools.PermissionDenied, "Permission denied: %s is the workspace itself", name)
	}
	if err := p.dir.Remove(p.name); err != nil {
		if errors.Is(err, syscall.ENOTEMPTY) {
			err = syscall.ENOTEMPTY // alone, whatever it is wrapped in
		}
		return tools.Output{}, failure(name, err)
	}
	return tools.Output{Values: map[string]any{
		"success": true, "path": name, "was_directory": p.info.IsDir(),
	}}, nil
}

// checkTarget follows a link at the end of the path, so that one which leads
// out is refused and one which leads nowhere is not found. Only the link itself
// is removed afterwards.
func (f *files) checkTarget(ctx context.Context, c tools.Input, name string) error {
	p, err := f.find(ctx, c.Root, name, want{})
	if err != nil {
		return err
	}
	defer p.close()
	if p.info == nil {
		return failure(name, fs.ErrNotExist)
	}
	return nil
}
