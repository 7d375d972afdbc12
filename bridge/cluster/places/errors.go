package places

import (
	"errors"
	"fmt"
)

var (
	// ErrAway: the server that has the workspace is not there. Nothing ran.
	ErrAway = errors.New("places: the server that has the workspace is away")
	// ErrUnjoined: another server has the workspace, and this one has no way there. Nothing
	// ran.
	ErrUnjoined = errors.New("places: another server has the workspace")
	// ErrLost: the server that has the workspace went away before it answered. The call may
	// have taken effect.
	ErrLost = errors.New("places: the server that has the workspace did not answer")
	// ErrUnknown: there is no such server, or nothing that could have a workspace.
	ErrUnknown = errors.New("places: no such server")
	// ErrMixed: some of the servers on the store share one folder, and some do not.
	ErrMixed = errors.New("places: all servers on a store must use the same workspace setup: shared by all or by none")
	// ErrNowhere: workspaces belong to no server here.
	ErrNowhere = errors.New("places: workspaces belong to no server: this one is alone on its store, or all share one folder")
)

// Error is why a call does not reach a workspace. It is an ErrAway, an ErrUnjoined or an
// ErrLost.
type Error struct {
	Kind  error
	Owner FolderOwner
}

func (e *Error) Error() string {
	at := fmt.Sprintf("the workspace is at the server %q (folder %s, address %s)", e.Owner.Server, e.Owner.Folder, e.Owner.Address)
	switch {
	case errors.Is(e.Kind, ErrUnjoined):
		return at + ", and this server has no mesh: start both with --mesh, send the agent's calls there, or give all servers one folder and --workspace-shared"
	case errors.Is(e.Kind, ErrLost):
		return at + ", which did not answer: the call may have taken effect; make it again with the same request_id"
	}
	return at + ", which is not reached: start it again, or give the workspace to another server by `loom-bridge-server workspace move`, which copies no files"
}

// Is makes errors.Is work.
func (e *Error) Is(target error) bool { return target == e.Kind }
