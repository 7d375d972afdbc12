package share

import (
	"errors"
	"fmt"
)

// ErrExhausted: a tenant or an agent has used up its share, or all units are taken. It
// comes as an *ExhaustedError.
var ErrExhausted = errors.New("share: exhausted")

// ErrQuota is an ErrExhausted of units that are not given back by waiting, such as
// stored bytes.
var ErrQuota = errors.New("share: quota exceeded")

// Whose says whose units are used up: all, or a tenant's or an agent's share.
type Whose string

// The values of Whose.
const (
	ByServer Whose = "server"
	ByTenant Whose = "tenant"
	ByAgent  Whose = "agent"
)

// ExhaustedError says which share was used up. It is an ErrExhausted.
type ExhaustedError struct {
	// Pool and Setting are from the pool's options.
	Pool, Setting string
	// Whose says whose share it is, and Name which tenant or agent.
	Whose Whose
	Name  string
	// Quota says that waiting does not help.
	Quota bool
	// Held is what the owner holds, Wanted what it asked for, and Total what
	// there is for everybody.
	Held, Wanted, Total int64
}

// exhausted is the error of an agent that can't have n units.
func (p *Pool) exhausted(whose Whose, a *agent, n int64) error {
	e := &ExhaustedError{
		Pool: p.opts.Name, Setting: p.opts.Setting, Quota: p.opts.Quota, Whose: whose, Wanted: n, Total: p.opts.Total,
	}
	switch whose {
	case ByTenant:
		e.Name, e.Held = a.tenant.name, a.tenant.held
	case ByAgent:
		e.Name, e.Held = a.name, a.held
	default:
		e.Held = p.sum.held
	}
	return e
}

func (e *ExhaustedError) Error() string {
	text := fmt.Sprintf("share: all %d %s are taken", e.Total, e.Pool)
	if e.Whose != ByServer {
		text = fmt.Sprintf("share: the %s %q has %d of %d %s, which is its share", e.Whose, e.Name, e.Held, e.Total, e.Pool)
	}
	if e.Quota {
		if e.Wanted > 0 {
			text += fmt.Sprintf(", and %d more are needed", e.Wanted)
		}
		text += "; delete some"
	} else {
		text += "; wait until some have ended"
	}
	if e.Setting != "" {
		text += ", or raise " + e.Setting
	}
	return text
}

// Is makes errors.Is(err, ErrExhausted) true.
func (e *ExhaustedError) Is(target error) bool {
	return target == ErrExhausted || e.Quota && target == ErrQuota
}

// ErrLimit: a limit that is not divided into shares is reached.
var ErrLimit = errors.New("share: limit is reached")

// LimitError says which limit was reached. It is an ErrLimit.
type LimitError struct {
	What  string
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("share: limit of %d %s is reached", e.Limit, e.What)
}

// Is makes errors.Is(err, ErrLimit) true.
func (e *LimitError) Is(target error) bool { return target == ErrLimit }
