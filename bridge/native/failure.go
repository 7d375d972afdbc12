package native

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"syscall"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
)

func errTraversal() *tools.Error {
	return tools.Errorf(tools.PermissionDenied, "Permission denied: Path traversal detected")
}

func errStore() *tools.Error {
	return tools.Errorf(tools.PermissionDenied, "Permission denied: the store's own directory")
}

// escapes is the text of the error that os.Root gives when a path leads out. The
// package exports no value to compare with.
const escapes = "path escapes from parent"

// failure says for the model what went wrong with a path. Errors of a context
// and those made for the model already stay as they are. The workspace's own
// place on disk is left out.
func failure(name string, err error) error {
	if _, ok := errors.AsType[*tools.Error](err); ok || errors.Is(err, tools.ErrAgentLimit) {
		return err
	}
	cause := bare(err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return wrapped(tools.NotFound, "File not found: "+name, err)
	case cause.Error() == escapes:
		return errTraversal()
	case errors.Is(err, fs.ErrPermission):
		return wrapped(tools.PermissionDenied, "Permission denied: "+name, err)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return wrapped(tools.TooLarge, "path too long: "+name, err)
	}
	return wrapped(tools.Failed, ""+name+": "+cause.Error(), err)
}

func wrapped(code tools.Code, message string, cause error) *tools.Error {
	return &tools.Error{Code: code, Message: message, Cause: cause}
}

// bare takes the operation and the file name off an error of the system.
func bare(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}
