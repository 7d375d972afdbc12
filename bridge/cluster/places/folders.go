package places

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

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
	places *Places // may be nil
	here   Maker
}

// methodFolder is the method of these calls, and folderTime bounds one.
const (
	methodFolder = "folder"
	folderTime   = 5 * time.Second
)

// Fields of such a call, and of its answer.
const (
	fieldTenant = iota + 1
	fieldAgent
	fieldRemove
	fieldDone // of an answer: it is made, or removed
	fieldExists
	fieldProblem
)

// NewFolders returns what makes folders here by a Maker, and answers what others ask.
func NewFolders(p *Places, here Maker) *Folders {
	f := &Folders{places: p, here: here}
	if p != nil {
		p.Serve(methodFolder, func(_ context.Context, payload []byte) []byte { return f.answer(payload) })
	}
	return f
}

// Make makes the folder of an agent. Its errors are those of the Maker and of Places.Where.
func (f *Folders) Make(scope kv.Scope) error {
	elsewhere, err := f.ask(scope, false)
	if elsewhere || err != nil {
		return err
	}
	return f.here.Make(scope)
}

// Remove removes the folder of an agent, if it is empty and can be reached.
func (f *Folders) Remove(scope kv.Scope) {
	if elsewhere, err := f.ask(scope, true); !elsewhere && err == nil {
		f.here.Remove(scope)
	}
}

// ask has another server do it, if that has the workspace.
func (f *Folders) ask(scope kv.Scope, remove bool) (elsewhere bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), folderTime)
	defer cancel()
	at, err := f.places.Where(ctx, scope)
	if err != nil || at.IsZero() {
		return false, err
	}
	b := wire.AppendText(wire.AppendText(nil, fieldTenant, scope.Tenant), fieldAgent, scope.Owner)
	if remove {
		b = wire.AppendNumber(b, fieldRemove, 1)
	}
	answer, err := f.places.Forward(ctx, scope, at, methodFolder, b)
	if err != nil {
		return true, err
	}
	for field, err := range wire.Fields(answer) {
		switch {
		case err != nil:
			return true, fmt.Errorf("places: answer: %w", err)
		case field.Number == fieldDone:
			return true, nil
		case field.Number == fieldExists:
			return true, fs.ErrExist
		case field.Number == fieldProblem:
			return true, fmt.Errorf("places: make the folder of %q elsewhere: %s", scope.Owner, field.Bytes)
		}
	}
	return true, errors.New("places: an answer with nothing in it")
}

// answer does what another server asks.
func (f *Folders) answer(payload []byte) []byte {
	var tenant, agent string
	remove := false
	for field, err := range wire.Fields(payload) {
		if err != nil {
			return wire.AppendItem(nil, fieldProblem, err.Error())
		}
		switch field.Number {
		case fieldTenant:
			tenant = string(field.Bytes)
		case fieldAgent:
			agent = string(field.Bytes)
		case fieldRemove:
			remove = true
		}
	}
	scope := kv.AgentScope(tenant, agent)
	if remove {
		f.here.Remove(scope)
		return wire.AppendNumber(nil, fieldDone, 1)
	}
	switch err := f.here.Make(scope); {
	case errors.Is(err, fs.ErrExist):
		return wire.AppendNumber(nil, fieldExists, 1)
	case err != nil:
		return wire.AppendItem(nil, fieldProblem, err.Error())
	}
	return wire.AppendNumber(nil, fieldDone, 1)
}
