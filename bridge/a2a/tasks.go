package a2a

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loom-bridge/loom-bridge/bridge/events"
	"github.com/loom-bridge/loom-bridge/bridge/events/store"
)

const (
	// MaxListed bounds the tasks of an agent that a list looks at, the newest ones.
	MaxListed = 1000
	// MaxListedBytes bounds what it reads of them.
	MaxListedBytes = 64 << 20
)

// Tasks are the tasks of all agents. Safe for concurrent use.
type Tasks struct{ from store.Scanner }

// New returns the tasks that are kept in an engine.
func New(from store.Scanner) *Tasks { return &Tasks{from} }

// Get reads a task; ErrNotFound if there is none, or its first event is gone.
func (t *Tasks) Get(ctx context.Context, tenant, agent, id string) (*Task, error) {
	task := &Task{Agent: agent, ID: id, State: Submitted}
	scope := store.Ref(tenant, Topic(agent, id)).Scope
	if scope.Validate() != nil {
		return nil, ErrNotFound
	}
	for from := uint64(1); ; {
		page, err := store.Page(ctx, t.from, scope, from, store.Limit{})
		if err != nil {
			return nil, fmt.Errorf("a2a: read task %q: %w", id, err)
		}
		if from == 1 && (len(page) == 0 || page[0].Sequence != 1 || page[0].Type != Message) {
			return nil, ErrNotFound
		}
		if len(page) == 0 {
			return task, nil
		}
		for i := range page {
			task.Take(&page[i])
		}
		from = task.Last + 1
	}
}

// List returns the newest tasks of an agent whose giver is seen, the one that was updated last
// first, without their events.
func (t *Tasks) List(ctx context.Context, tenant, agent string, sees func(giver string) bool) ([]*Task, error) {
	var topics []store.Topic
	for topic, err := range store.Topics(ctx, t.from, store.TopicsOf(tenant, Topic(agent, ""))) {
		if err != nil {
			return nil, fmt.Errorf("a2a: list the tasks of %q: %w", agent, err)
		}
		if of, _, ok := Of(topic.Scope.Owner); ok && of == agent && topic.First == 1 && !topic.Empty() {
			topics = append(topics, topic)
		}
	}
	slices.SortFunc(topics, func(a, b store.Topic) int { return b.LastTime.Compare(a.LastTime) })
	var tasks []*Task
	bytes := 0
	for _, topic := range topics[:min(len(topics), MaxListed)] {
		if bytes > MaxListedBytes {
			break
		}
		first, err := store.Page(ctx, t.from, topic.Scope, 1, store.Limit{Events: 1, Bytes: 1})
		if err != nil || len(first) == 0 {
			continue // it went meanwhile, or can't be read: GetTask says why
		}
		if bytes += first[0].Size(); !sees(first[0].Source) {
			continue
		}
		_, id, _ := Of(topic.Scope.Owner)
		task, err := t.Get(ctx, tenant, agent, id)
		if err != nil {
			continue
		}
		bytes += task.bytes
		task.Events = nil
		tasks = append(tasks, task)
	}
	slices.SortStableFunc(tasks, func(a, b *Task) int {
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(b.ID, a.ID))
	})
	return tasks, nil
}

// Admit rules whether a task takes an event, before the bus does. It says the type of one that
// is a plain reply, and has every event stored. The event must be on a topic of a task.
func (t *Tasks) Admit(ctx context.Context, tenant string, e *events.Event, opts *events.EmitOptions) error {
	agent, id, _ := Of(e.Topic)
	opts.Volatile = false
	if e.Type == "" {
		if e.Type = Completed; e.Headers[HeaderError] != "" {
			e.Type = Failed
		}
	}
	e.Source = opts.EmitterOf(e)
	task, err := t.Get(ctx, tenant, agent, id)
	if errors.Is(err, ErrNotFound) && e.Type == Message {
		task, err = t.begin(ctx, tenant, agent, id)
	}
	if err != nil {
		return err
	}
	return task.check(e, e.Source)
}

// begin is a task without events; ErrNotFound for one that has had some.
func (t *Tasks) begin(ctx context.Context, tenant, agent, id string) (*Task, error) {
	record, err := store.RecordOf(ctx, t.from, store.Ref(tenant, Topic(agent, id)).Scope)
	if err != nil {
		return nil, fmt.Errorf("a2a: begin task %q: %w", id, err)
	}
	if record.Last > 0 {
		return nil, ErrNotFound
	}
	return &Task{Agent: agent, ID: id}, nil
}

// Waits reports whether an event need be delivered to an agent: of messages to its tasks only
// those do that wait for an answer, so that a reader who begins in the past gets no other.
func (t *Tasks) Waits(ctx context.Context, tenant string, e *events.Event) bool {
	agent, id, ok := Of(e.Topic)
	if !ok || e.Type != Message {
		return true
	}
	task, err := t.Get(ctx, tenant, agent, id)
	if err != nil {
		return !errors.Is(err, ErrNotFound)
	}
	return task.Waits(e)
}
