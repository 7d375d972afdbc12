package erasure

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// Tags of the keyspaces that are read here (memory/FORMAT.md).
const (
	ofSession   = "esfhoaguvtmpxr" // log: a key begins with the session
	ofPrompts   = "pxr"            // log: records of prompts and their texts
	ofPlans     = "jpxl"           // records: plans of loom.v1, which are no memory
	ofRelations = "oiOIf"          // records: relations, under either end; see leftRelation
	blobEntry   = 'p'
	manifestTag = 'm'
	childTag    = 'c'
	spawnedTag  = 'p'
)

// part is what a session or a filter picks out of a subject.
type part struct {
	session string
	// records are the ids of those that go, by scope. A scope that is there is left out
	// whole, for Refill to write anew.
	records Picked
	// prompts tells whose records of prompts go, because they may show such records.
	prompts func(kv.Scope) bool

	steps  map[uint64]bool // of the session
	paths  map[string]bool // of results that go
	refs   map[string]bool // hashes of those that nothing leads to any more
	chunks map[string]bool // that what stays is made of
	forks  map[string]bool // hashes of what children's prompts begin with
}

func newPart(subject Subject, scope kv.Scope, records Picked) *part {
	p := &part{
		session: subject.Session, records: records, steps: make(map[uint64]bool), paths: make(map[string]bool),
		refs: make(map[string]bool), chunks: make(map[string]bool), forks: make(map[string]bool),
		prompts: func(kv.Scope) bool { return false },
	}
	if subject.Filter != "" && len(records) > 0 {
		p.prompts = func(s kv.Scope) bool {
			return s.Kind == kv.OwnerAgent && (subject.Kind != Agent || s == scope)
		}
	}
	return p
}

// learn reads what the session's entries lead to.
func (p *part) learn(ctx context.Context, from store.Scanner, scope kv.Scope) error {
	if p.session == "" {
		return nil
	}
	err := each(ctx, from, kv.Log, scope.Key('n'), func(tail, value []byte) error {
		sessions, err := text(value, 1)
		if len(tail) == 8 && len(sessions) == 1 && sessions[0] == p.session {
			p.steps[binary.BigEndian.Uint64(tail)] = true
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := p.learnBlobs(ctx, from, scope); err != nil {
		return err
	}
	return each(ctx, from, kv.System, scope.Key(spawnedTag), func(tail, value []byte) error {
		if len(tail) != 8 || !p.steps[binary.BigEndian.Uint64(tail)] {
			return nil
		}
		child := kv.Scope{Tenant: scope.Tenant, Kind: kv.OwnerAgent, Owner: string(value)}
		found, err := from.Get(ctx, kv.System, child.Key(childTag))
		if err != nil || found[0] == nil {
			return err
		}
		hashes, err := text(found[0], 20)
		for _, hash := range hashes {
			p.forks[hash] = true
		}
		return err
	})
}

// learnBlobs sorts the owner's offloaded results: those of the session, and those that stay.
func (p *part) learnBlobs(ctx context.Context, from store.Scanner, scope kv.Scope) error {
	stay := make(map[string]bool)
	err := each(ctx, from, kv.Blobs, scope.Key(blobEntry), func(path, value []byte) error {
		ours, ref := false, ""
		for f, err := range wire.Fields(value) {
			if err != nil {
				return err
			}
			switch f.Number {
			case 1:
				ref = string(f.Bytes)
			case 2:
				ours = ours || p.steps[f.Value]
			case 3:
				ours = ours || string(f.Bytes) == p.session
			}
		}
		if !ours {
			stay[ref] = true
			return nil
		}
		p.paths[string(path)], p.refs[ref] = true, true
		return nil
	})
	for ref := range stay {
		if delete(p.refs, ref); err != nil {
			return err
		}
		manifest, got := from.Get(ctx, kv.Blobs, append(scope.Key(manifestTag), ref...))
		if got != nil {
			return got
		}
		hashes, got := text(manifest[0], 3)
		if got != nil {
			return got
		}
		for _, all := range hashes {
			for ; len(all) >= sha256.Size; all = all[sha256.Size:] {
				p.chunks[all[:sha256.Size]] = true
			}
		}
	}
	return err
}

// each calls see for all keys with a prefix, which is cut off.
func each(ctx context.Context, from store.Scanner, ks kv.Keyspace, prefix []byte, see func(tail, value []byte) error) error {
	for pair, err := range from.Scan(ctx, ks, kv.Prefix(prefix)) {
		if err == nil {
			err = see(pair.Key[len(prefix):], pair.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fate is what becomes of an entry.
type fate uint8

const (
	stays fate = iota
	goes
	empties // its value goes
	anew    // it is left out, and Refill writes it again as far as it stays
)

// partOf says what becomes of an entry of the subject's tenant that is no event and no message.
// rest begins with the tag.
func (e *Eraser) partOf(ks kv.Keyspace, scope kv.Scope, rest, value []byte) (fate, error) {
	tag, tail := rest[0], rest[1:]
	switch ks {
	case kv.Records, kv.Index:
		if e.done != nil {
			return e.leftOver(ks, scope, tag, tail, value)
		}
		if _, found := e.part.records[scope]; found && (ks == kv.Index || strings.IndexByte(ofPlans, tag) < 0) {
			return anew, nil
		}
	case kv.Log:
		if strings.IndexByte(ofPrompts, tag) >= 0 && e.part.prompts(scope) {
			return goes, nil
		}
		if e.part.session != "" && scope == e.scope {
			return e.ofLog(tag, tail, value)
		}
	case kv.Blobs:
		if e.part.session != "" && scope == e.scope {
			return e.ofBlobs(tag, tail, value)
		}
	case kv.System:
		if e.part.session != "" {
			return e.ofSystem(scope, tag, tail, value)
		}
	}
	return stays, nil
}

// leftOver finds records that should have gone.
func (e *Eraser) leftOver(ks kv.Keyspace, scope kv.Scope, tag byte, tail, value []byte) (fate, error) {
	if ks == kv.Records && strings.IndexByte(ofRelations, tag) >= 0 {
		return e.leftRelation(scope, tag, tail)
	}
	if ks != kv.Records || tag != 'r' && tag != 'h' {
		return stays, nil
	}
	id := string(tail)
	if tag == 'h' {
		var err error
		if id, _, err = kv.CutEscaped(tail); err != nil {
			return stays, err
		}
	}
	if e.done[Digest(scope, id)] {
		return goes, nil
	}
	if e.part.session == "" || scope != e.scope {
		return stays, nil
	}
	r, err := record.Decode(value)
	if err == nil && r.SessionID == e.part.session {
		return goes, nil
	}
	return stays, err
}

// leftRelation finds relations of records that should have gone, those that stand and those
// that have ended, whose keys have that moment behind the id.
func (e *Eraser) leftRelation(scope kv.Scope, tag byte, tail []byte) (fate, error) {
	if tag == 'f' {
		return e.part.when(e.done[Digest(scope, string(tail))]), nil
	}
	id, rest, err := kv.CutEscaped(tail)
	if err != nil {
		return stays, err
	}
	if tag == 'O' || tag == 'I' {
		rest = rest[min(8, len(rest)):]
	}
	_, other, err := kv.CutEscaped(rest)
	return e.part.when(e.done[Digest(scope, id)] || e.done[Digest(scope, string(other))]), err
}

// Digest stands for the id of a record in a certificate.
func Digest(scope kv.Scope, id string) string {
	sum := sha256.Sum256(append(scope.AppendPrefix(nil), id...))
	return hex.EncodeToString(sum[:16])
}

func (e *Eraser) ofLog(tag byte, tail, value []byte) (fate, error) {
	p := e.part
	switch {
	case strings.IndexByte(ofSession, tag) >= 0:
		session, _, err := kv.CutEscaped(tail)
		return p.when(session == p.session), err
	case tag == 'n', tag == 'k':
		sessions, err := text(value, 1)
		ours := len(sessions) == 1 && sessions[0] == p.session
		if ours && tag == 'n' { // numbers of steps have no gap
			return empties, err
		}
		return p.when(ours), err
	case tag == 'b':
		return p.when(len(tail) > 0 && string(behindName(tail)) == p.session), nil
	case tag == 'q', tag == 'w': // which sessions these are of nothing says
		return p.when(e.done == nil), nil
	}
	return stays, nil
}

func (e *Eraser) ofBlobs(tag byte, tail, value []byte) (fate, error) {
	p := e.part
	switch tag {
	case blobEntry:
		return p.when(p.paths[string(tail)]), nil
	case 'a':
		return p.when(p.paths[string(value)]), nil
	case 's':
		return p.when(len(tail) >= 8 && (p.steps[binary.BigEndian.Uint64(tail)] || p.paths[string(tail[8:])])), nil
	case 'r':
		return p.when(len(tail) >= sha256.Size && p.paths[string(tail[sha256.Size:])]), nil
	case manifestTag, 'l':
		return p.when(p.refs[string(tail)]), nil
	case 'c': // one that nothing is made of may be of an upload that was cut off
		return p.when(e.done == nil && !p.chunks[string(tail)]), nil
	case 'u', 'q': // counted again when it is needed; answers name paths
		return p.when(e.done == nil), nil
	}
	return stays, nil
}

func (e *Eraser) ofSystem(scope kv.Scope, tag byte, tail, value []byte) (fate, error) {
	p := e.part
	agent := e.subject.ID
	ours := func(agentField, sessionField int) (fate, error) {
		whose, err := text(value, agentField)
		sessions, other := text(value, sessionField)
		if err == nil {
			err = other
		}
		return p.when(len(whose) == 1 && whose[0] == agent && len(sessions) == 1 && sessions[0] == p.session), err
	}
	name, _, _ := strings.Cut(scope.Owner, "#")
	switch {
	case scope.Kind == kv.OwnerSystem && name == "intents" && tag == 'i':
		mine, err := e.listed(scope.Owner, tag, tail, value)
		if err != nil || !mine {
			return stays, err
		}
		sessions, err := text(value, 1)
		return p.when(len(sessions) == 1 && sessions[0] == p.session), err
	case scope.Kind == kv.OwnerSystem && name == "children" && tag == 'c':
		return p.when(e.orphans[string(tail)]), nil
	case scope.Kind == kv.OwnerSystem && name == "audit" && tag == 'r': // none, once bridge/audit has erased them
		return ours(1, 2)
	case scope.Kind == kv.OwnerSystem && name == "approvals" && tag == 'g':
		return ours(4, 5)
	case scope.Kind != kv.OwnerAgent:
	case tag == childTag, tag == 'v':
		gone, err := e.child(scope, append([]byte{tag}, tail...), value)
		return p.when(gone), err
	case tag == 'u' && p.refs[string(tail)]: // what this agent may read of the session's
		whose, err := text(value, 1)
		return p.when(len(whose) == 1 && whose[0] == agent), err
	case scope != e.scope:
	case tag == spawnedTag:
		return p.when(len(tail) == 8 && p.steps[binary.BigEndian.Uint64(tail)]), nil
	case tag == 'w':
		return p.when(len(tail) >= sha256.Size && p.forks[string(tail[:sha256.Size])]), nil
	}
	return stays, nil
}

func (*part) when(it bool) fate {
	if it {
		return goes
	}
	return stays
}
