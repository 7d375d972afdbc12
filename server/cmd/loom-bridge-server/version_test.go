package main

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestRevision(t *testing.T) {
	t.Parallel()
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	commit := setting("vcs.revision", strings.Repeat("0123456789", 4))
	for _, test := range []struct {
		settings []debug.BuildSetting
		want     string
	}{
		{nil, ""},
		{[]debug.BuildSetting{setting("vcs.modified", "true")}, ""},
		{[]debug.BuildSetting{commit, setting("vcs.modified", "false")}, "+012345678901"},
		{[]debug.BuildSetting{commit, setting("vcs.modified", "true")}, "+012345678901.dirty"},
		{[]debug.BuildSetting{setting("vcs.revision", "abc")}, "+abc"},
	} {
		if got := revision(test.settings); got != test.want {
			t.Errorf("%v: %q, want %q", test.settings, got, test.want)
		}
	}
}
