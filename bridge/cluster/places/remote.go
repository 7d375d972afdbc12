package places

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/cluster/mesh"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// reply is the answer to a question.
type reply[A any] struct {
	Answer A
	Exists bool   // it is a fs.ErrExist
	Failed string // why there is none; empty where there is
}

// Remote returns a function that asks the server with the workspace of an agent, and registers
// answer for the questions of other servers. If here is true, this server must act: it has the
// workspace, or no server has it; take makes it the owner then. Errors of answer arrive as
// texts, except fs.ErrExist.
func Remote[Q, A any](p *Places, method string, take bool, answer func(ctx context.Context, q Q) (A, error)) func(ctx context.Context, scope kv.Scope, q Q) (got A, here bool, err error) {
	if p == nil {
		return func(context.Context, kv.Scope, Q) (got A, here bool, err error) { return got, true, nil }
	}
	p.Serve(method, func(ctx context.Context, payload []byte) []byte {
		var r reply[A]
		q, err := mesh.Decode[Q](payload)
		if err == nil {
			r.Answer, err = answer(ctx, q)
		}
		if err != nil {
			r.Failed, r.Exists = err.Error(), errors.Is(err, fs.ErrExist)
		}
		return mesh.Encode(r)
	})
	return func(ctx context.Context, scope kv.Scope, q Q) (got A, here bool, err error) {
		at, err := p.where(ctx, scope, take)
		if err != nil || at.IsZero() {
			return got, err == nil, err
		}
		b, err := p.Forward(ctx, scope, at, method, mesh.Encode(q))
		if err != nil {
			return got, false, err
		}
		r, err := mesh.Decode[reply[A]](b)
		switch {
		case err != nil:
		case r.Exists:
			err = fs.ErrExist
		case r.Failed != "":
			err = errors.New(r.Failed)
		}
		return r.Answer, false, err
	}
}

// Maker makes and removes the folder of an agent below the workspace of this server.
type Maker interface {
	// Make makes it. One that is there is an fs.ErrExist.
	Make(scope kv.Scope) error
	// Remove removes it, if it is empty.
	Remove(scope kv.Scope)
}

// Folders makes the folders of agents at the server that has the workspace which they lie
// in. It is a Maker.
type Folders struct {
	here Maker
	ask  func(ctx context.Context, scope kv.Scope, q folder) (struct{ Done bool }, bool, error)
}

// folder is what another server is asked to make, or to remove.
type folder struct {
	Tenant, Agent string
	Remove        bool
}

// folderTime bounds a call of another server.
const folderTime = 5 * time.Second

// NewFolders returns what makes folders here by a Maker, and answers what others ask. Places may
// be nil.
func NewFolders(p *Places, here Maker) *Folders {
	f := &Folders{here: here}
	f.ask = Remote(p, "folder", true, func(_ context.Context, q folder) (done struct{ Done bool }, err error) {
		if scope := kv.AgentScope(q.Tenant, q.Agent); q.Remove {
			here.Remove(scope)
		} else {
			err = here.Make(scope)
		}
		return done, err
	})
	return f
}

// Make makes the folder of an agent. It returns the errors of the Maker and of
// Places.Where.
func (f *Folders) Make(scope kv.Scope) error {
	here, err := f.elsewhere(scope, false)
	if here {
		return f.here.Make(scope)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("places: make the folder of %q elsewhere: %w", scope.Owner, err)
	}
	return err
}

// Remove removes the folder of an agent, if it is empty and can be reached.
func (f *Folders) Remove(scope kv.Scope) {
	if here, _ := f.elsewhere(scope, true); here {
		f.here.Remove(scope)
	}
}

func (f *Folders) elsewhere(scope kv.Scope, remove bool) (here bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), folderTime)
	defer cancel()
	_, here, err = f.ask(ctx, scope, folder{scope.Tenant, scope.Owner, remove})
	return here, err
}
