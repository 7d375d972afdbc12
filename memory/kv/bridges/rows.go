package bridges

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// maxRetired bounds the holders that are remembered as retired in a store.
const maxRetired = 4096

// other is a store beside that of the registry. A server that is registered has a row there:
// its registration once more, without a lease. Commits there are refused without the row, so
// who takes a server for dead deletes it before anything of that server is settled.
//
// Rows are written and deleted under an exact guard, and written by a server that reads the
// guard's sequence first and its registration after it. So a row that comes late is refused:
// either the deletion has raised the sequence since, or the registration was gone already.
type other struct {
	Part
	entry division

	mu      sync.Mutex
	retired map[string]struct{} // guarded by mu; holders under which nothing is committed here
}

// divide makes the map of the options that of its stores.
func (r *Registry) divide(ctx context.Context) error {
	d := r.opts.Division
	if d == nil {
		return nil
	}
	for _, p := range d.Others {
		if err := r.compareClock(ctx, p); err != nil {
			return err
		}
	}
	if err := r.claim(ctx); err != nil {
		return err
	}
	for i, p := range d.Others {
		r.others = append(r.others, &other{Part: p, entry: r.divisions[i+1], retired: make(map[string]struct{})})
	}
	return nil
}

// compareClock refuses a store whose clock differs from that of the registry's.
func (r *Registry) compareClock(ctx context.Context, p Part) error {
	_, own, within, err := r.time(ctx)
	if err != nil {
		return err
	}
	_, ahead, around, err := (&Registry{engine: p.Engine}).time(ctx)
	if err != nil {
		return p.wrap(err)
	}
	if by := ahead - own; by.Abs() > MaxSkew+within+around {
		return p.wrap(fmt.Errorf("%w: it differs from that of store %q by %v, and %v is the most; let both follow one time server", ErrSkew, r.opts.Division.Own.Name, by.Round(time.Millisecond), MaxSkew))
	}
	return nil
}

// checkDivision refuses a store that is used by another map than that of this process.
func (r *Registry) checkDivision(e entries) error {
	found, want := decodeDivision(e.division), division{}
	if len(r.divisions) > 0 {
		want = r.divisions[0]
	}
	switch {
	case found == want:
		return nil
	case want == (division{}):
		return fmt.Errorf("%w: servers use it by %s; give the server that map (--store-map)", ErrDivision, found)
	}
	return fmt.Errorf("%w: it is used by %s, this server has epoch %d; start it with that map", ErrDivision, found, want.epoch)
}

// registered tells whether the registry has a registration of this process.
func (r *Registry) registered(ctx context.Context, self Bridge) (bool, error) {
	values, err := r.engine.Get(ctx, kv.System, bridgeKey(self.ID))
	return err == nil && bytes.Equal(values[0], self.encode()), err
}

// admit writes the row of this process into another store. It is ErrFenced where the
// registration has ended.
func (r *Registry) admit(ctx context.Context, o *other, self Bridge) error {
	for range registerAttempts {
		sequences, err := o.Engine.Sequence(ctx, ref) // before the rest, see other
		if err != nil {
			return err
		}
		e, err := entriesOf(ctx, o.Engine)
		if err != nil {
			return err
		}
		if found := decodeDivision(e.division); found != o.entry {
			return fmt.Errorf("%w: it is used by %s", ErrDivision, found)
		}
		if still, err := r.registered(ctx, self); err != nil || !still {
			return errors.Join(err, kv.ErrFenced)
		}
		c := kv.Commit{Guards: []kv.Guard{{Ref: ref, Sequence: sequences[0]}}, Batch: new(kv.Batch), Unfenced: true}
		c.Batch.Put(kv.System, bridgeKey(self.ID), self.encode())
		err = o.Engine.Commit(ctx, c)
		if !errors.Is(err, kv.ErrConflict) && !errors.Is(err, kv.ErrUnknownOutcome) {
			return err
		}
	}
	return kv.ErrConflict
}

// keepRow keeps the row of this process in another store: it writes that of each new
// registration. Where the row of this one is gone, others have settled what it did there, and
// it is registered anew.
func (r *Registry) keepRow(ctx context.Context, o *other) {
	every := r.opts.Term / (Term / RenewEvery)
	admitted, well := r.Self(), true // Join has seen to it
	for {
		_, changed := r.All()
		self := r.Self()
		if self != (Bridge{}) {
			turn, cancel := context.WithTimeout(ctx, every)
			err := r.rowTurn(turn, o, self, &admitted)
			cancel()
			if err != nil && well && ctx.Err() == nil {
				r.opts.Logger.Warn("the row of this server in a store was not looked at", "store", o.Name, "error", err)
			}
			well = err == nil
		}
		timer := time.NewTimer(every)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

func (r *Registry) rowTurn(ctx context.Context, o *other, self Bridge, admitted *Bridge) error {
	if self != *admitted {
		err := r.admit(ctx, o, self)
		if err == nil {
			*admitted = self
		}
		return err
	}
	e, err := entriesOf(ctx, o.Engine)
	if err != nil {
		return err
	}
	if !bytes.Equal(e.bridges[self.ID].stored, self.encode()) {
		r.lose(o, self)
		return nil
	}
	return r.sweep(ctx, o, e)
}

// lose has this process registered anew, as others do when they took it for dead.
func (r *Registry) lose(o *other, self Bridge) {
	r.mu.Lock()
	if r.self != self { // it is registered anew already
		r.mu.Unlock()
		return
	}
	r.set(Bridge{}, r.all)
	r.mu.Unlock()
	r.opts.Logger.Error("the row of this server in a store is gone; calls that ran have an unknown outcome", "store", o.Name, "epoch", self.Epoch)
	r.engine.Health().Fail(kv.ErrFenced)
	select {
	case r.anew <- struct{}{}:
	default:
	}
}

// sweep deletes the rows that were read in a store before of servers that have ended.
func (r *Registry) sweep(ctx context.Context, o *other, rows entries) error {
	left := func(all []Bridge) map[string]entry {
		gone := make(map[string]entry, len(rows.bridges))
		for id, row := range rows.bridges {
			gone[id] = row
		}
		for _, b := range all {
			if gone[b.ID].Epoch == b.Epoch {
				delete(gone, b.ID)
			}
		}
		return gone
	}
	if known, _ := r.All(); len(left(known)) == 0 {
		return nil
	}
	all, err := r.read(ctx) // one may have come since
	if err != nil {
		return err
	}
	for id, row := range left(all) {
		if err := r.retireIn(ctx, o, Bridge{ID: id, Epoch: row.Epoch}.String()); err != nil {
			return err
		}
	}
	return nil
}

// retire makes sure that nothing of a tenant is committed any more under a registration that
// has ended.
func (r *Registry) retire(ctx context.Context, tenant, holder string) error {
	for _, o := range r.others {
		if o.Holds(tenant) {
			return r.retireIn(ctx, o, holder)
		}
	}
	return nil
}

func (r *Registry) retireIn(ctx context.Context, o *other, holder string) error {
	o.mu.Lock()
	_, done := o.retired[holder]
	o.mu.Unlock()
	if done {
		return nil
	}
	id, number, _ := strings.Cut(holder, "@")
	epoch, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return nil // no server commits under such a name
	}
	for range registerAttempts {
		if err = o.removeRow(ctx, id, epoch); !errors.Is(err, kv.ErrConflict) && !errors.Is(err, kv.ErrUnknownOutcome) {
			break
		}
	}
	if err != nil {
		return o.wrap(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.retired) >= maxRetired {
		clear(o.retired)
	}
	o.retired[holder] = struct{}{}
	return nil
}

// removeRow deletes the row of a server up to an epoch, and refuses one that is on its way.
func (o *other) removeRow(ctx context.Context, id string, epoch uint64) error {
	sequences, err := o.Engine.Sequence(ctx, ref)
	if err != nil {
		return err
	}
	values, err := o.Engine.Get(ctx, kv.System, bridgeKey(id))
	if err != nil {
		return err
	}
	c := kv.Commit{Guards: []kv.Guard{{Ref: ref, Sequence: sequences[0]}}, Batch: new(kv.Batch)}
	if values[0] != nil {
		if decodeBridge(id, values[0]).Epoch > epoch { // its row has been replaced since, which raised the sequence
			return nil
		}
		c.Batch.Delete(kv.System, bridgeKey(id))
	}
	return o.Engine.Commit(ctx, c)
}

// leave deletes the rows of this process. One that can't be deleted commits nothing any more
// either: the next who settles something there, or sweeps, deletes it.
func (r *Registry) leave(ctx context.Context, self Bridge) {
	var all sync.WaitGroup
	for _, o := range r.others {
		all.Go(func() { _ = o.removeRow(ctx, self.ID, self.Epoch) })
	}
	all.Wait()
}
