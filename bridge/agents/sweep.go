package agents

import "time"

// sweepPause is the least time between two sweeps; so much later than it could
// be is an agent found inactive or forgotten.
const sweepPause = 20 * time.Millisecond

// sweep does what is due by the clock, until the directory is closed.
func (d *Directory) sweep() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-d.done:
			return
		case <-d.replan:
		case <-timer.C:
			d.sweepOnce()
		}
		if wait, due := d.untilPlanned(); due {
			timer.Reset(max(wait, sweepPause))
		} else {
			timer.Stop()
		}
	}
}

func (d *Directory) untilPlanned() (time.Duration, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.planned.Sub(d.now()), !d.planned.IsZero()
}

// plan sees to it that a sweep comes at a time; zero plans nothing. The caller
// holds mu.
func (d *Directory) plan(at time.Time) {
	if at.IsZero() || !d.planned.IsZero() && !at.Before(d.planned) {
		return
	}
	d.planned = at
	notify(d.replan)
}

// sweepOnce frees registrations, reports who is late, and plans the next sweep.
func (d *Directory) sweepOnce() {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	d.planned = time.Time{}
	for _, h := range d.tenants {
		for _, e := range h.agents {
			if len(e.links) == 0 && !now.Before(e.idleSince.Add(d.opts.IdleRegistration)) {
				d.leave(e)
				continue
			}
			d.report(e)
			if len(e.links) == 0 {
				d.plan(e.idleSince.Add(d.opts.IdleRegistration))
			}
			for _, l := range e.links {
				if at := l.overdueAt(DefaultMissedHeartbeats); now.Before(at) {
					d.plan(at)
				}
			}
		}
	}
}
