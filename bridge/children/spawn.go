package children

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/loom-bridge/loom-bridge/bridge/hand"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/guard"
	"github.com/loom-bridge/loom-bridge/context/instruct"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/writer"
)

// The tools under which the steps of parents stand.
const (
	// ToolSpawn is that of the step that spawned a child.
	ToolSpawn = "agent:spawn"
	// ToolResult is that of the step that has its result.
	ToolResult = "agent:result"
)

// GoalMessage is the one message that a child's session begins with: of role system; of role
// user for a fork, and where a model's tool made the child.
func GoalMessage(goal string) string { return "Goal: " + guard.Inline(text.Seen(goal)) }

// Birth is a child that is about to be made: the commit of its parent's step
// commits Join with it, and calls End with what came of that; again is harmless.
type Birth struct {
	Child Child
	Join  *tools.Join
	// again says that the child is there already, by the same request.
	again bool
	end   func(error)
}

// Again reports whether the child is there already, by the same request: there is nothing to
// commit then.
func (b *Birth) Again() bool { return b.again }

// End takes the child up after the commit, or gives its place free when there was none.
func (b *Birth) End(err error) { b.end(err) }

// Spawn makes a child, and notifies it. It is durable when Spawn returns. Errors that change
// nothing: *invalid.Error, ErrExists, ErrDepth, ErrTooMany, ErrEnded where the
// parent is a child that has ended, kv.ErrRequestReused, blob.ErrNotFound for a grant,
// tools.ErrAgentLimit where the parent has no step left, or one of the store.
func (s *Spawner) Spawn(ctx context.Context, r Spawn) (Child, error) {
	c, err := s.make(ctx, r)
	if err != nil {
		return Child{}, err
	}
	s.announce(context.WithoutCancel(ctx), &c)
	return c, nil
}

// announce notifies a child of its spawn, or has that done later.
func (s *Spawner) announce(ctx context.Context, c *Child) {
	if err := s.notifySpawned(ctx, c); err != nil {
		s.opts.Logger.Warn("could not notify a child of its spawn", "scope", c.Scope().String(), "error", err)
		s.doubt(c.Scope(), question{})
	}
}

// make is Spawn without telling the child.
func (s *Spawner) make(ctx context.Context, r Spawn) (Child, error) {
	b, err := s.Prepare(ctx, r)
	switch {
	case err != nil:
		return Child{}, err
	case b.Again():
		return b.Child, nil
	}
	args, err := json.Marshal(map[string]string{"child_id": r.Child, "goal": r.Goal})
	if err != nil {
		b.End(err)
		return Child{}, err
	}
	_, err = s.Hand.Record(ctx, hand.Recorded{
		Request: hand.Request{
			Scope: kv.AgentScope(r.Tenant, r.Parent), SessionID: r.ParentSession, Name: ToolSpawn, Args: args,
		},
		Join: b.Join,
	})
	if b.End(err); err != nil {
		return Child{}, fmt.Errorf("children: spawn: %w", err)
	}
	return b.Child, nil
}

// Prepare checks a spawn and makes the workspace. The caller commits and ends what it
// returns.
func (s *Spawner) Prepare(ctx context.Context, r Spawn) (*Birth, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	c, grants, err := s.child(ctx, &r)
	if err != nil {
		return nil, err
	}
	if again, err := s.again(ctx, &c); again != nil || err != nil {
		return again, err
	}
	head, err := s.forked(ctx, &c, &r)
	if err != nil {
		return nil, err
	}
	if err := s.begin(&c); err != nil {
		return nil, err
	}
	b := &Birth{Child: c}
	made := false
	var once sync.Once
	end := func(err error) {
		switch {
		case err == nil:
			s.Log.Committed(c.Scope(), 1)
			s.add(&b.Child, life{})
			defer s.announce(context.WithoutCancel(ctx), &b.Child)
		case errors.Is(err, kv.ErrUnknownOutcome):
			// Nobody knows of the child but the store, if it is there.
			s.doubt(c.Scope(), question{until: s.opts.Now().Add(unknownFor)})
		case made:
			s.Folders.Remove(c.Scope())
		}
		s.finish(&c)
	}
	b.end = func(err error) { once.Do(func() { end(err) }) }
	err = s.unused(ctx, c.Scope())
	if err == nil {
		err = s.Folders.Make(c.Scope())
		made = err == nil
	}
	if errors.Is(err, fs.ErrExist) {
		err = fmt.Errorf("%w: the workspace has an entry %q", ErrExists, c.ID)
	}
	if err != nil {
		b.End(err)
		return nil, err
	}
	scope := c.Scope()
	b.Join = &tools.Join{
		Refs:  append([]kv.Ref{childRef(scope), s.Log.Ref(scope)}, keepRefs(c.parentScope(), grants)...),
		Blind: []kv.Ref{liveList.Ref(scope), childRef(c.parentScope())},
		Stage: func(ctx context.Context, tx *kv.Tx, step uint64) error {
			b.Child.Number = step
			stageFork(tx, &b.Child, head)
			return s.stage(ctx, tx, &b.Child, grants)
		},
		End: b.end,
	}
	return b, nil
}

// child is the child that a spawn asks for, and the blobs that are granted to it.
func (s *Spawner) child(ctx context.Context, r *Spawn) (Child, []blob.Entry, error) {
	parent := kv.AgentScope(r.Tenant, r.Parent)
	above, isChild, err := get(ctx, s.Store.engine, parent)
	if err != nil {
		return Child{}, nil, err
	}
	now := s.opts.Now().UTC().Round(0) // the deadline is a moment of the clock that the store has
	c := Child{
		Tenant: r.Tenant, ID: r.Child, Parent: r.Parent, Depth: 1, Goal: r.Goal, SessionID: r.SessionID, ParentSession: r.ParentSession,
		Tools: r.Tools, Profile: r.Profile, Limits: r.Limits.over(DefaultLimits()), Time: now, requestID: r.RequestID, asks: instruct.Parent,
	}
	if writer.Of(ctx) != writer.Program {
		c.asks = instruct.Model
	}
	switch {
	case isChild && (above.Result != nil || above.late(now)):
		return Child{}, nil, fmt.Errorf("%w: %q", ErrEnded, r.Parent)
	case isChild:
		c.Depth, c.Limits = above.Depth+1, c.Limits.atMost(above.Limits)
	}
	if c.Depth > DefaultMaxDepth {
		return Child{}, nil, fmt.Errorf("%w: %q is at depth %d, and none may be deeper than %d", ErrDepth, r.Parent, c.Depth-1, DefaultMaxDepth)
	}
	if err := s.has(&c, above.Tools); err != nil {
		return Child{}, nil, err
	}
	if c.Tools == nil {
		c.Tools = above.Tools
	}
	grants, err := s.granted(ctx, parent, r.Grants)
	if err != nil {
		return Child{}, nil, err
	}
	refs := make([]string, len(grants))
	for i := range grants {
		refs[i] = grants[i].Ref
	}
	c.digest = digestOf(&c, refs, r.From)
	if c.SessionID == "" {
		c.SessionID = "session-" + strings.ToLower(rand.Text())
	}
	if c.Limits.Timeout > 0 {
		c.Deadline = now.Add(c.Limits.Timeout)
	}
	return c, grants, nil
}

// has returns an *invalid.Error for tools and a profile that the parent has not, and gives
// the tools their own names. Those of the parent are nil for all.
func (s *Spawner) has(c *Child, parents []string) error {
	c.Tools = slices.Clone(c.Tools)
	for i, tool := range c.Tools {
		name, ok := s.ToolName(c.Tenant, tool)
		if !ok || parents != nil && !slices.Contains(parents, name) {
			return invalid.Field(ErrInvalid, fmt.Sprintf("tools[%d]", i), "is %q, which the parent can't call", tool)
		}
		c.Tools[i] = name
	}
	if c.Profile != "" && !s.HasProfile(c.Profile) {
		return invalid.Field(ErrInvalid, "profile", "is %q, but there is no profile of that name", c.Profile)
	}
	return nil
}

// forked says what a child's prompts begin with, where it is a fork, and returns that where
// no other fork of the parent has it already.
func (s *Spawner) forked(ctx context.Context, c *Child, r *Spawn) ([]byte, error) {
	if r.From == nil {
		return nil, nil
	}
	head, err := s.Forks.ForkPoint(ctx, c.parentScope(), c.ParentSession, r.From.PromptID)
	switch {
	case err != nil:
		return nil, err
	case len(head) > MaxForkBytes:
		return nil, invalid.Field(ErrInvalid, "fork_from", "is a prompt of %d bytes, over the limit of %d", len(head), MaxForkBytes)
	}
	sum := sha256.Sum256(head)
	c.Fork = string(sum[:])
	there, err := s.Store.engine.Get(ctx, kv.System, forkKey(c.parentScope(), c.Fork, 0))
	switch {
	case err != nil:
		return nil, fmt.Errorf("children: read fork: %w", err)
	case there[0] != nil:
		return nil, nil
	}
	return head, nil
}

// stageFork stages what a fork begins with.
func stageFork(tx *kv.Tx, c *Child, head []byte) {
	part := 0
	for piece := range slices.Chunk(head, maxForkPart) {
		tx.Put(kv.System, forkKey(c.parentScope(), c.Fork, part), piece)
		part++
	}
}

// maxForkPart bounds one value of what a fork begins with.
const maxForkPart = 512 << 10

// granted finds blobs by their names.
func (s *Spawner) granted(ctx context.Context, owner kv.Scope, names []string) ([]blob.Entry, error) {
	found := make([]blob.Entry, 0, len(names))
	for _, name := range names {
		e, err := s.Blobs.Lookup(ctx, owner, name)
		if err != nil {
			return nil, err
		}
		found = append(found, e)
	}
	return found, nil
}

// keepRefs are the refs of a commit that grants blobs of an owner.
func keepRefs(owner kv.Scope, grants []blob.Entry) []kv.Ref {
	if len(grants) == 0 {
		return nil
	}
	return []kv.Ref{{Keyspace: kv.Blobs, Scope: owner}}
}

// stageGrants stages that a reader may read blobs of an owner, which are kept for good.
func (s *Spawner) stageGrants(ctx context.Context, tx *kv.Tx, reader, owner kv.Scope, grants []blob.Entry) error {
	for _, e := range grants {
		if err := s.Keep(ctx, tx, owner, e); err != nil {
			return err
		}
		tx.Put(kv.System, grantKey(reader, e.Ref), encodeGrant(owner.Owner))
	}
	return nil
}

// again finds the child that the same request made before.
func (s *Spawner) again(ctx context.Context, c *Child) (*Birth, error) {
	first, found, err := get(ctx, s.Store.engine, c.Scope())
	switch {
	case err != nil || !found:
		return nil, err
	case c.requestID == "" || first.requestID != c.requestID || first.Parent != c.Parent:
		return nil, exists(c.ID)
	case first.digest != c.digest:
		return nil, fmt.Errorf("%w: %s", kv.ErrRequestReused, c.requestID)
	}
	return &Birth{Child: first, again: true, end: func(error) {}}, nil
}

func exists(id string) error { return fmt.Errorf("%w: %q", ErrExists, id) }

// begin takes a place for a child. Nobody else makes it meanwhile.
func (s *Spawner) begin(c *Child) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	parent := c.parentScope()
	_, making := s.making[c.Scope()]
	switch {
	case s.closed:
		return hand.ErrClosed
	case making:
		return exists(c.ID)
	case s.parents[parent] >= s.opts.MaxChildren:
		return &LimitError{Of: "parent", Limit: s.opts.MaxChildren}
	case s.tenants[c.Tenant] >= s.opts.MaxTenant:
		return &LimitError{Of: "tenant", Limit: s.opts.MaxTenant}
	}
	s.making[c.Scope()] = false
	s.parents[parent]++
	s.tenants[c.Tenant]++
	return nil
}

// LimitError says whose children are too many. It is an ErrTooMany.
type LimitError struct {
	// Of is `parent` or `tenant`.
	Of    string
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("children: the %s has %d children at once, as many as it may; wait for one to return", e.Of, e.Limit)
}

// Is makes errors.Is(err, ErrTooMany) true.
func (e *LimitError) Is(target error) bool { return target == ErrTooMany }

// finish frees the place that begin took: a spawned child has its own.
func (s *Spawner) finish(c *Child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.making, c.Scope())
	s.uncount(c.parentScope())
}

// unused returns an ErrExists for an id that an agent has.
func (s *Spawner) unused(ctx context.Context, scope kv.Scope) error {
	if s.InUse(scope.Tenant, scope.Owner) {
		return exists(scope.Owner)
	}
	for _, ks := range []kv.Keyspace{kv.Log, kv.Records, kv.Blobs} {
		used, err := holds(ctx, s.Store.engine, ks, scope)
		switch {
		case err != nil:
			return fmt.Errorf("children: spawn: %w", err)
		case used:
			return exists(scope.Owner)
		}
	}
	return nil
}

// holds reports whether there is anything in a scope.
func holds(ctx context.Context, from kv.Getter, ks kv.Keyspace, scope kv.Scope) (bool, error) {
	r := kv.Prefix(scope.AppendPrefix(nil))
	r.Limit = 1
	for _, err := range from.Scan(ctx, ks, r) {
		return err == nil, err
	}
	return false, nil
}

// stage stages everything that a child is.
func (s *Spawner) stage(ctx context.Context, tx *kv.Tx, c *Child, grants []blob.Entry) error {
	scope := c.Scope()
	_, there, err := get(ctx, tx, scope)
	if err == nil && !there {
		there, err = holds(ctx, tx, kv.Log, scope)
	}
	switch {
	case err != nil:
		return err
	case there:
		return exists(c.ID)
	}
	role := instruct.Of(instruct.ChildGoal).RoleOf(c.asks)
	if c.Fork != "" {
		role = session.User // it stands behind what was said
	}
	if _, err := s.Log.StageMessages(ctx, tx, scope, c.SessionID, []session.Message{{Role: role, Content: GoalMessage(c.Goal)}}); err != nil {
		return err
	}
	tx.Put(kv.System, childKey(scope), c.encode())
	tx.Put(kv.System, spawnedKey(c.parentScope(), c.Number), []byte(c.ID))
	tx.Put(kv.System, liveKey(scope), []byte{})
	return s.stageGrants(ctx, tx, scope, c.parentScope(), grants)
}
