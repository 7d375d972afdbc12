package main

import (
	"errors"
	"net"
	"slices"
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

// ignoreClosed closes what somebody else may have closed already.
func ignoreClosed(closer func() error) func() error {
	return func() error {
		if err := closer(); !errors.Is(err, net.ErrClosed) {
			return err
		}
		return nil
	}
}
