package pgkv

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// States of the server's errors (appendix A of its manual), and our own.
const (
	stateFull       = "53100" // disk_full
	stateDeadlock   = "40P01"
	stateSerialize  = "40001"
	stateTaken      = "LM001"
	stateWatched    = "LM002"
	stateFenced     = "LM003"
	stateReadOnly   = "25006" // read_only_sql_transaction
	classConnection = "08"
	classShutdown   = "57P" // operator intervention: shutdown, crash, starting up
	classResources  = "53"
)

// reading gives an error of a statement that writes nothing its kind.
func (db *DB) reading(err error) error {
	state, ok := errors.AsType[*pgconn.PgError](err)
	if _, connecting := errors.AsType[*pgconn.ConnectError](err); connecting && !ok && !errors.Is(err, context.Canceled) {
		return unreachable(err)
	}
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if ok && !strings.HasPrefix(state.Code, classConnection) && !strings.HasPrefix(state.Code, classShutdown) && !strings.HasPrefix(state.Code, classResources) {
		return fmt.Errorf("PostgreSQL: %w", err)
	}
	return unreachable(err)
}

// unreachable says that no server answers. The deadline that a connection had is not that of
// a caller, so err is only quoted.
func unreachable(err error) error { return fmt.Errorf("%w: %s", kv.ErrUnreachable, err.Error()) }

// verdict is what an error of a commit means.
type verdict int

const (
	refused verdict = iota // the error is the answer; nothing was written
	again                  // nothing was written, and another try may succeed
	unknown                // it may have been written
)

// writing gives an error of a commit its kind.
func writing(err error) (verdict, error) {
	state, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		if pgconn.SafeToRetry(err) {
			return again, unreachable(err)
		}
		return unknown, fmt.Errorf("%w: %w", kv.ErrUnknownOutcome, err)
	}
	switch {
	case state.Code == stateFull:
		return refused, fmt.Errorf("%w: %w", kv.ErrFull, err)
	case state.Code == stateTaken:
		return refused, fmt.Errorf("%w: %w", kv.ErrFailed, err)
	case state.Code == stateFenced:
		return refused, kv.ErrFenced
	case state.Code == stateReadOnly: // a standby, or a server that an operator keeps from writing
		return refused, unreachable(err)
	case state.Code == stateDeadlock || state.Code == stateSerialize:
		return again, fmt.Errorf("PostgreSQL: %w", err)
	case strings.HasPrefix(state.Code, classShutdown) || strings.HasPrefix(state.Code, classConnection):
		return unknown, fmt.Errorf("%w: %w", kv.ErrUnknownOutcome, err)
	case strings.HasPrefix(state.Code, classResources):
		return again, unreachable(err)
	}
	return refused, fmt.Errorf("PostgreSQL: %w", err)
}
