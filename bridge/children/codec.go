package children

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Tags of what is kept, in the keyspace system (memory/FORMAT.md).
const (
	tagChild    = 'c' // in the child's scope: the child
	tagAttached = 'v' // there, too: it was attached
	tagSpawned  = 'p' // in the parent's scope: number of a step, child
	tagGrant    = 'u' // in the reader's scope: hash of a blob, who has it
	tagFork     = 'w' // in the parent's scope: hash, part of what its forks begin with
	tagLive     = 'c' // in the list: a child that lives, or whose result was not told
)

// liveList has the children that live, and those whose result was not told.
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

// Fields of a child.
const (
	fieldParent = iota + 1
	fieldNumber
	fieldDepth
	fieldGoal
	fieldSession
	fieldParentSession
	fieldTool
	fieldAllTools
	fieldProfile
	fieldSteps
	fieldStepTokens
	fieldFiles
	fieldBytes
	fieldTimeout
	fieldTime
	fieldDeadline
	fieldRequest
	fieldDigest
	fieldResult
	fieldFork
)

// Fields of a result.
const (
	resultSuccess = iota + 1
	resultText
	resultError
	resultGrant
	resultTime
	resultStep
)

func (c *Child) encode() []byte {
	b := make([]byte, 0, 256+len(c.Goal))
	b = wire.AppendText(b, fieldParent, c.Parent)
	b = wire.AppendUint(b, fieldNumber, c.Number)
	b = wire.AppendInt(b, fieldDepth, int64(c.Depth))
	b = wire.AppendText(b, fieldGoal, c.Goal)
	b = wire.AppendText(b, fieldSession, c.SessionID)
	b = wire.AppendText(b, fieldParentSession, c.ParentSession)
	for _, tool := range c.Tools {
		b = wire.AppendItem(b, fieldTool, tool)
	}
	if c.Tools == nil {
		b = wire.AppendUint(b, fieldAllTools, 1)
	}
	b = wire.AppendText(b, fieldProfile, c.Profile)
	b = wire.AppendInt(b, fieldSteps, int64(c.Limits.Steps))
	b = wire.AppendInt(b, fieldStepTokens, int64(c.Limits.StepTokens))
	b = wire.AppendInt(b, fieldFiles, int64(c.Limits.Files))
	b = wire.AppendInt(b, fieldBytes, c.Limits.Bytes)
	b = wire.AppendInt(b, fieldTimeout, c.Limits.Timeout.Microseconds())
	b = wire.AppendTime(b, fieldTime, c.Time)
	if !c.Deadline.IsZero() {
		b = wire.AppendTime(b, fieldDeadline, c.Deadline)
	}
	if c.requestID != "" {
		b = wire.AppendText(b, fieldRequest, c.requestID)
		b = wire.AppendText(b, fieldDigest, c.digest[:])
	}
	b = wire.AppendText(b, fieldFork, c.Fork)
	if c.Result != nil {
		b = wire.AppendItem(b, fieldResult, c.Result.encode())
	}
	return b
}

func (r *Result) encode() []byte {
	var b []byte
	if r.Success {
		b = wire.AppendUint(b, resultSuccess, 1)
	}
	b = wire.AppendText(b, resultText, r.Text)
	b = wire.AppendText(b, resultError, r.Error)
	for _, ref := range r.Grants {
		b = wire.AppendItem(b, resultGrant, ref)
	}
	b = wire.AppendTime(b, resultTime, r.Time)
	return wire.AppendUint(b, resultStep, r.Step)
}

// decode reads the child that a scope is.
func decode(scope kv.Scope, value []byte) (Child, error) {
	c := Child{Tenant: scope.Tenant, ID: scope.Owner, Tools: []string{}}
	for f, err := range wire.Fields(value) {
		if err != nil {
			return Child{}, damaged(err)
		}
		switch f.Number {
		case fieldParent:
			c.Parent = string(f.Bytes)
		case fieldNumber:
			c.Number = f.Value
		case fieldDepth:
			c.Depth = int(f.Int())
		case fieldGoal:
			c.Goal = string(f.Bytes)
		case fieldSession:
			c.SessionID = string(f.Bytes)
		case fieldParentSession:
			c.ParentSession = string(f.Bytes)
		case fieldTool:
			c.Tools = append(c.Tools, string(f.Bytes))
		case fieldAllTools:
			c.Tools = nil
		case fieldProfile:
			c.Profile = string(f.Bytes)
		case fieldTime:
			c.Time = f.Time()
		case fieldDeadline:
			c.Deadline = f.Time()
		case fieldRequest:
			c.requestID = string(f.Bytes)
		case fieldDigest:
			copy(c.digest[:], f.Bytes)
		case fieldFork:
			c.Fork = string(f.Bytes)
		case fieldResult:
			if c.Result, err = decodeResult(f.Bytes); err != nil {
				return Child{}, err
			}
		default:
			c.Limits.read(f)
		}
	}
	return c, nil
}

func (l *Limits) read(f wire.Field) {
	switch f.Number {
	case fieldSteps:
		l.Steps = int(f.Int())
	case fieldStepTokens:
		l.StepTokens = int(f.Int())
	case fieldFiles:
		l.Files = int(f.Int())
	case fieldBytes:
		l.Bytes = f.Int()
	case fieldTimeout:
		l.Timeout = time.Duration(f.Int()) * time.Microsecond
	}
}

func decodeResult(value []byte) (*Result, error) {
	r := &Result{}
	for f, err := range wire.Fields(value) {
		if err != nil {
			return nil, damaged(err)
		}
		switch f.Number {
		case resultSuccess:
			r.Success = f.Value != 0
		case resultText:
			r.Text = string(f.Bytes)
		case resultError:
			r.Error = string(f.Bytes)
		case resultGrant:
			r.Grants = append(r.Grants, string(f.Bytes))
		case resultTime:
			r.Time = f.Time()
		case resultStep:
			r.Step = f.Value
		}
	}
	return r, nil
}

// digestOf tells spawns with the same request id apart.
func digestOf(c *Child, grants []string, from *Point) [32]byte {
	said := Child{
		Parent: c.Parent, Goal: c.Goal, SessionID: c.SessionID, ParentSession: c.ParentSession, Tools: c.Tools,
		Profile: c.Profile, Limits: c.Limits,
	}
	b := said.encode()
	for _, ref := range grants {
		b = wire.AppendItem(b, fieldResult, ref)
	}
	if from != nil {
		b = wire.AppendItem(b, fieldFork, from.PromptID)
	}
	return sha256.Sum256(b)
}

// grantOwner is the only field of a grant.
const grantOwner = 1

func encodeGrant(owner string) []byte { return wire.AppendText(nil, grantOwner, owner) }

func decodeGrant(value []byte) (owner string, err error) {
	for f, err := range wire.Fields(value) {
		if err != nil {
			return "", damaged(err)
		}
		if f.Number == grantOwner {
			owner = string(f.Bytes)
		}
	}
	return owner, nil
}

func damaged(err error) error { return fmt.Errorf("%w: children: %w", kv.ErrDamaged, err) }
