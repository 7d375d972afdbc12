package throttle

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/share"
)

// ErrLimited: a rule has no room for the call. It comes as a *LimitedError.
var ErrLimited = errors.New("throttle: limited")

// retryRunning is when a call should come again that found too many at once: it is unknown
// when one of them ends.
const retryRunning = time.Second

// LimitedError says which rule refused a call. It is an ErrLimited.
type LimitedError struct {
	Rule Rule
	Tool string
	// Agent and Tenant are whose call it was.
	Tenant, Agent string
	// Retry is when it may come again: exact for a rate without other users,
	// else a guess.
	Retry time.Duration
}

func (e *LimitedError) Error() string {
	whose := "the server has"
	switch e.Rule.Per {
	case PerAgent:
		whose = fmt.Sprintf("the agent %q has", e.Agent)
	case PerTenant:
		whose = fmt.Sprintf("the tenant %q has", e.Tenant)
	case PerServer:
	}
	did := "made its"
	if e.Rule.Every == 0 {
		did = "under way its"
	}
	return fmt.Sprintf("throttle: %s %s %s (--tool-limits %q); try %s again in %v", whose, did, e.Rule.amount(), e.Rule, e.Tool, e.Retry.Round(time.Millisecond))
}

// amount is what the rule allows, in words.
func (r Rule) amount() string {
	word := map[time.Duration]string{0: "at once", time.Second: "a second", time.Minute: "a minute", time.Hour: "an hour"}[r.Every]
	return fmt.Sprintf("%d calls %s", r.Amount, word)
}

// Is makes errors.Is(err, ErrLimited) true.
func (e *LimitedError) Is(target error) bool { return target == ErrLimited }

// Limits are rules with their current use. All methods are safe for concurrent use; nil
// Limits have no rules.
type Limits struct {
	now func() time.Time

	mu    sync.Mutex // held while a call begins, so that it counts for all rules or nothing
	rules []*counted
}

// counted is a rule with its current use. The mutex of the Limits guards it.
type counted struct {
	Rule
	buckets map[owner]*bucket     // of a rate
	pools   map[owner]*share.Pool // of a number at once
	running int64
	refused int64
}

// owner is whose calls count together, as far as the rule goes: without agent a tenant,
// without tenant the server.
type owner struct{ tenant, agent string }

// New returns limits with nothing used, or nil without rules. Nil now is time.Now.
func New(rules []Rule, now func() time.Time) *Limits {
	if len(rules) == 0 {
		return nil
	}
	if now == nil {
		now = time.Now
	}
	l := &Limits{now: now}
	for _, r := range rules {
		l.rules = append(l.rules, &counted{Rule: r, buckets: map[owner]*bucket{}, pools: map[owner]*share.Pool{}})
	}
	return l
}

// Call is a call that counts for rules, until it ends. End of a nil Call does nothing.
type Call struct {
	limits *Limits
	held   []held
}

type held struct {
	rule  *counted
	owner owner
	place *share.Holding
}

// Begin counts a call of a tool in, or returns a *LimitedError and counts nothing.
func (l *Limits) Begin(tenant, agent, tool string) (*Call, error) {
	if l == nil {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	call := &Call{limits: l}
	var paid []*bucket
	for _, r := range l.rules {
		if !r.matches(tool) {
			continue
		}
		o := r.ownerOf(tenant, agent)
		wait, ok := retryRunning, true
		if r.Every > 0 {
			b := r.bucket(o, l.now())
			if wait, ok = b.take(l.now(), tenant, agent); ok {
				paid = append(paid, b)
			}
		} else if place, err := r.pool(o).TryTake(share.Owner{Tenant: tenant, Agent: agent}, 1); err != nil {
			ok = false
		} else {
			r.running++
			call.held = append(call.held, held{r, o, place})
		}
		if !ok {
			r.refused++
			for _, b := range paid {
				b.left++
				if g := b.tenants[tenant]; g != nil && g.agents[agent] != nil && g.agents[agent].own {
					g.agents[agent].left++
				}
			}
			call.leave()
			return nil, &LimitedError{Rule: r.Rule, Tool: tool, Tenant: tenant, Agent: agent, Retry: wait}
		}
	}
	if call.held == nil {
		return nil, nil
	}
	return call, nil
}

// End counts the call out. Ending twice is harmless.
func (c *Call) End() {
	if c == nil {
		return
	}
	c.limits.mu.Lock()
	defer c.limits.mu.Unlock()
	c.leave()
}

// leave gives the places back. The caller holds the mutex.
func (c *Call) leave() {
	for _, h := range c.held {
		h.place.Leave()
		h.rule.running--
		if pool := h.rule.pools[h.owner]; pool != nil && pool.Held() == 0 {
			delete(h.rule.pools, h.owner)
		}
	}
	c.held = nil
}

func (r *counted) ownerOf(tenant, agent string) owner {
	switch r.Per {
	case PerAgent:
		return owner{tenant, agent}
	case PerTenant:
		return owner{tenant: tenant}
	case PerServer:
	}
	return owner{}
}

func (r *counted) pool(o owner) *share.Pool {
	p := r.pools[o]
	if p == nil {
		p = share.New(share.Options{Name: "calls of " + r.Tool, Setting: "--tool-limits", Total: int64(r.Amount), OneTenant: r.Per != PerServer})
		r.pools[o] = p
	}
	return p
}

// maxBuckets is the number of buckets of a rule beyond which full ones are dropped.
const maxBuckets = 4096

func (r *counted) bucket(o owner, now time.Time) *bucket {
	b := r.buckets[o]
	if b == nil {
		if len(r.buckets) >= maxBuckets {
			for other, b := range r.buckets {
				if now.Sub(b.at) >= r.Every {
					delete(r.buckets, other)
				}
			}
		}
		b = newBucket(r.Amount, r.Every, now)
		r.buckets[o] = b
	}
	return b
}

// Used says how a rule is used.
type Used struct {
	Rule Rule
	// Running are the calls under way that count for it; 0 for a rate. Refused are those
	// that it refused since the server started.
	Running, Refused int64
}

// Used describes all rules, in their order.
func (l *Limits) Used() []Used {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Used, len(l.rules))
	for i, r := range l.rules {
		out[i] = Used{r.Rule, r.running, r.refused}
	}
	return out
}
