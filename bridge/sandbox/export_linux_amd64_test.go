package sandbox

import (
	"bytes"
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loom-bridge/loom-bridge/bridge/sandbox/inner"
)

// Probe tries a tier from which layers were taken away, and says what it found.
func Probe(ctx context.Context, tier string, layers ...string) string {
	l := NewLocal(&Options{Tier: tier, Without: layers})
	defer l.Close()
	report, err := l.try(ctx, Confinement{Tier: tier, LandlockABI: 99})
	if err == nil {
		return ""
	}
	return err.Error() + report.Error
}

// Settle waits until the stages that are being made are ready, or ended.
func (l *Local) Settle() { l.pool.making.Wait() }

// Age makes all stages that wait older, and their last use, and looks after them.
func (l *Local) Age(by time.Duration) {
	l.pool.mu.Lock()
	for _, k := range l.pool.kinds {
		k.used = k.used.Add(-by)
		for _, w := range k.ready {
			w.made = w.made.Add(-by)
		}
	}
	l.pool.mu.Unlock()
	l.tend()
}

// KillReady kills the stages that wait, as somebody outside could.
func (l *Local) KillReady() {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	for _, k := range l.pool.kinds {
		for _, w := range k.ready {
			w.stage.kill()
			_, _ = w.control.Read(make([]byte, 1)) // it ends when the stage has
		}
	}
}

// Litter has the launcher read orders that can't be carried out until it has collected its
// garbage.
func (l *Local) Litter() error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	files := make([]int, inner.OrderFiles)
	for i := range files {
		files[i] = int(null.Fd())
	}
	for range 300 {
		if err := l.launcher.send(l.program.file, []byte(`{"attributes":{"Chroot":"`+string(bytes.Repeat([]byte("x"), 60_000))+`"}`), unix.UnixRights(files...)); err != nil {
			return err
		}
	}
	return nil
}
