//go:build !linux

package folder

import "errors"

// Exchange is not possible here.
func Exchange(string, string) error { return errors.ErrUnsupported }

// Like does nothing here.
func Like(string, string) error { return nil }
