package main

import (
	"errors"
	"net"
	"slices"
	"time"
)

// closers are what was opened, in order. They are closed in reverse, all of
// them, whatever fails.
type closers []func() error

func (c *closers) add(closer func() error) { *c = append(*c, closer) }

func (c *closers) close() error {
	var errs []error
	for _, closer := range slices.Backward(*c) {
		errs = append(errs, closer())
	}
	*c = nil
	return errors.Join(errs...)
}

// closeWithin closes them, but waits no longer than that. It tells whether all was
// closed in time; what was not goes on by itself.
func (c *closers) closeWithin(wait time.Duration) (closed bool, err error) {
	all := *c
	*c = nil
	done := make(chan error, 1)
	go func() { done <- all.close() }()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case err := <-done:
		return true, err
	case <-timer.C:
		return false, nil
	}
}

// ignoreClosed closes what somebody else may have closed already.
func ignoreClosed(closer func() error) func() error {
	return func() error {
		if err := closer(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}
