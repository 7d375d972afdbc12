package children

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// Tags of what is kept, in the keyspace system (memory/FORMAT.md).
const (
	tagChild    = 'c' // in the child's scope: the child
	tagAttached = 'v' // there, too: it was attached
	tagSpawned  = 'p' // in the parent's scope: number of a step, child
	tagGrant    = 'u' // in the reader's scope: hash of a blob, who has it
	tagFork     = 'w' // in the parent's scope: hash, part of what its forks begin with
	tagLive     = 'c' // in the list: a live child, or one whose parent was not notified of its result
)

// liveList holds the live children, and those whose parent was not notified of the result.
const liveList = kv.List("children")

func childRef(scope kv.Scope) kv.Ref { return kv.Ref{Keyspace: kv.System, Scope: scope} }

func childKey(scope kv.Scope) []byte { return scope.Key(tagChild) }

func attachedKey(scope kv.Scope) []byte { return scope.Key(tagAttached) }

func spawnedKey(parent kv.Scope, number uint64) []byte {
	return parent.Key(tagSpawned, binary.BigEndian.AppendUint64(nil, number))
}

func liveKey(child kv.Scope) []byte { return liveList.Part(child).Key(tagLive, []byte(child.Owner)) }

// grantKey is where a reader's grant of a blob stands. A ref is 64 digits of hex.
func grantKey(reader kv.Scope, ref string) []byte {
	sum, err := hex.DecodeString(ref)
	if err != nil {
		sum = []byte(ref)
	}
	return reader.Key(tagGrant, sum)
}

// forkKey is where a part stands of what forks of a parent begin with, and forkPrefix all
// parts.
func forkKey(parent kv.Scope, hash string, part int) []byte {
	return binary.BigEndian.AppendUint32(forkPrefix(parent, hash), uint32(part))
}

func forkPrefix(parent kv.Scope, hash string) []byte { return parent.Key(tagFork, []byte(hash)) }

func (c *Child) encode() []byte {
	m := &storev1.Child{
		Parent: c.Parent, Step: c.Number, Depth: int64(c.Depth), Goal: c.Goal, Session: c.SessionID, ParentSession: c.ParentSession,
		Tools: c.Tools, AllTools: c.Tools == nil, Profile: c.Profile,
		MaxSteps: int64(c.Limits.Steps), MaxStepTokens: int64(c.Limits.StepTokens), MaxFiles: int64(c.Limits.Files),
		MaxBytes: c.Limits.Bytes, Timeout: c.Limits.Timeout.Microseconds(),
		Spawned: wire.Micros(c.Time), Deadline: wire.Micros(c.Deadline), RequestId: c.requestID, Fork: []byte(c.Fork),
	}
	if c.requestID != "" {
		m.Request = c.digest[:]
	}
	if c.Result == nil {
		return wire.Marshal(m)
	}
	r := c.Result
	// The result always stood behind the fork.
	return wire.Marshal(m, &storev1.Child{Result: &storev1.ChildResult{
		Success: r.Success, Result: r.Text, Error: r.Error, Blobs: r.Grants, Time: wire.Micros(r.Time), Step: r.Step,
	}})
}

// decode reads the child that a scope is.
func decode(scope kv.Scope, value []byte) (Child, error) {
	var m storev1.Child
	if err := wire.Unmarshal(value, &m); err != nil {
		return Child{}, damaged(err)
	}
	c := Child{
		Tenant: scope.Tenant, ID: scope.Owner, Parent: m.Parent, Number: m.Step, Depth: int(m.Depth), Goal: m.Goal,
		SessionID: m.Session, ParentSession: m.ParentSession, Tools: m.Tools, Profile: m.Profile,
		Limits: Limits{
			Steps: int(m.MaxSteps), StepTokens: int(m.MaxStepTokens), Files: int(m.MaxFiles), Bytes: m.MaxBytes,
			Timeout: time.Duration(m.Timeout) * time.Microsecond,
		},
		Time: wire.TimeOf(m.Spawned), Deadline: wire.TimeOf(m.Deadline), requestID: m.RequestId, Fork: string(m.Fork),
	}
	copy(c.digest[:], m.Request)
	switch {
	case m.AllTools:
		c.Tools = nil
	case c.Tools == nil:
		c.Tools = []string{}
	}
	if r := m.Result; r != nil {
		c.Result = &Result{Success: r.Success, Text: r.Result, Error: r.Error, Grants: r.Blobs, Time: wire.TimeOf(r.Time), Step: r.Step}
	}
	return c, nil
}

// Fields of a spawn other than the child's.
const (
	saidGrant = 19
	saidFork  = 20
)

// digestOf distinguishes spawns with the same request id.
func digestOf(c *Child, grants []string, from *Point) [32]byte {
	said := Child{
		Parent: c.Parent, Goal: c.Goal, SessionID: c.SessionID, ParentSession: c.ParentSession, Tools: c.Tools,
		Profile: c.Profile, Limits: c.Limits,
	}
	b := said.encode()
	for _, ref := range grants {
		b = wire.AppendItem(b, saidGrant, ref)
	}
	if from != nil {
		b = wire.AppendItem(b, saidFork, from.PromptID)
	}
	return sha256.Sum256(b)
}

func encodeGrant(owner string) []byte { return wire.Marshal(&storev1.BlobGrant{Owner: owner}) }

func decodeGrant(value []byte) (owner string, err error) {
	var m storev1.BlobGrant
	if err := wire.Unmarshal(value, &m); err != nil {
		return "", damaged(err)
	}
	return m.Owner, nil
}

func damaged(err error) error { return fmt.Errorf("%w: children: %w", kv.ErrDamaged, err) }
