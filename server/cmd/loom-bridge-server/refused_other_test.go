//go:build !linux || !amd64

package main

import "testing"

// becomeOther does nothing where there are no other machines.
func becomeOther() {}

func lacks(tb testing.TB, _ string, problems []string) {
	tb.Helper()
	tb.Skipf("there is no sandbox here: %v", problems)
}
