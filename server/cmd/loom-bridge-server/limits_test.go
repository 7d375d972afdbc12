package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/loom-bridge/loom-bridge/bridge/throttle"
)

// mostOver is how far above its limit a server may come.
const mostOver = 1.25

// limit is a setting that bounds something, as a started server with a small value is held
// to it.
type limit struct {
	setting, value string
	// most is the value as a number, in unit.
	most float64
	unit string
	// by is what drives the server to its limit and beyond, and drive does it and returns
	// how far that came. Many of what comes in steps count short: more is then not tried.
	by    string
	drive func(s *stand) (reached float64)
}

// limits are what one server is held to, one after the other.
type limits struct {
	both   []string
	change func(s *stand, c *Config)
	files  map[string]string
	rows   []limit
}

// unmeasured says why a number among the settings is not driven to its limit here, and which
// test drives it, in whatever package.
type unmeasured struct{ why, test string }

// Reasons of several settings.
const (
	weighs   = "weighs, and bounds nothing"
	paces    = "is how often the server works, and bounds nothing of a caller"
	clocked  = "is hours and more; a test moves the clock"
	inTurns  = "divides what others want, so that no one alone has a limit; a test counts the parts"
	ofTenant = "is kept by a test with several tenants"
)

// unmeasuredLimits are the numbers among the settings that [drivenLimits] leaves out.
func unmeasuredLimits() map[string]unmeasured {
	return map[string]unmeasured{
		"vector-weight":       {weighs, "TestSettings"},
		"embedder-dimensions": {"says what is asked for", "TestSettings"},
		"tool-level":          {"names a level", "TestSettings"},
		"session-idle-ttl":    {clocked, "TestIdleSessionsClose"},
		"session-end-after":   {clocked, "TestIdleSessionsEnd"},
		"blob-ttl":            {clocked, "TestWhatIsCollected"},
		"events-max-age":      {clocked, "TestRetentionByAge"},
		"approval-timeout":    {"needs a person who watches and says nothing", "TestApprovalThatNeverComes"},
		"audit-retention":     {clocked, "TestOneServerSweeps"},
		"retain-records":      {clocked, "TestRetainRecords"},
		"retain-sessions":     {clocked, "TestRetainSessions"},
		"scrub-rate":          {"is bytes a second of hours of reading; a test moves the clock", "TestScrub"},
		"backup-interval":     {paces, "TestSettings"},
	}
}

// isNumber reports whether a setting counts, measures or times something.
func isNumber(f field) bool {
	switch f.(type) {
	case scalar[int], scalar[int64], scalar[time.Duration], scalar[float64], scalar[[]throttle.Rule], scalar[map[string]int], scalar[map[string]time.Duration]:
		return true
	}
	return false
}

// Every number among the settings is a limit that is driven, or says why not and which test
// keeps it.
func TestEveryLimitIsMeasured(t *testing.T) {
	t.Parallel()
	rows := map[string]bool{}
	for _, group := range drivenLimits() {
		for _, row := range group.rows {
			if rows[row.setting] {
				t.Errorf("--%s is driven twice", row.setting)
			}
			rows[row.setting] = true
		}
	}
	left := unmeasuredLimits()
	c := NewConfig()
	numbers := map[string]bool{}
	for _, s := range c.settings() {
		_, out := left[s.name]
		switch numbers[s.name] = isNumber(s.to); {
		case !numbers[s.name]:
		case rows[s.name] && out:
			t.Errorf("--%s is both driven and left out", s.name)
		case !rows[s.name] && !out:
			t.Errorf("--%s: add a row that drives a server to this limit, or say why not and which test keeps it", s.name)
		}
	}
	known := testNames(t)
	for name, u := range left {
		if !numbers[name] {
			t.Errorf("--%s is left out, and no number among the settings", name)
		}
		if !known[u.test] {
			t.Errorf("--%s is kept by %s, which is no test", name, u.test)
		}
	}
	for name := range rows {
		if !numbers[name] {
			t.Errorf("--%s is driven, and no number among the settings", name)
		}
	}
}

// testNames are the names of all tests of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names, function := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	must(t, filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "clients" || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		source, err := os.ReadFile(path)
		for _, found := range function.FindAllSubmatch(source, -1) {
			names[string(found[1])] = true
		}
		return err
	}))
	return names
}

// A started server keeps each of its limits, and comes at most a quarter over it. The table
// says how far each came. Limits of time are only judged on a machine that does nothing else
// (make limits).
func TestLimitsOfAServerSoak(t *testing.T) {
	t.Parallel()
	groups := drivenLimits()
	reached := make([][]float64, len(groups))
	t.Run("drive", func(t *testing.T) {
		for i, group := range groups {
			reached[i] = make([]float64, len(group.rows))
			t.Run(group.rows[0].setting, func(t *testing.T) {
				t.Parallel()
				s := group.start(t)
				for j, row := range group.rows {
					reached[i][j] = row.drive(s)
				}
			})
		}
	})
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "setting\tlimit\treached\tratio\tunit\tdriven by")
	for i, group := range groups {
		for j, row := range group.rows {
			ratio := reached[i][j] / row.most
			fmt.Fprintf(w, "--%s\t%.6g\t%.6g\t%.2f\t%s\t%s\n", row.setting, row.most, reached[i][j], ratio, row.unit, row.by)
			if row.unit == "seconds" && os.Getenv("LOOM_LIMITS") == "" {
				continue
			}
			if !(ratio > 0 && ratio <= mostOver) {
				t.Errorf("--%s %s: %s reached %v %s, %.2f of it", row.setting, row.value, row.by, reached[i][j], row.unit, ratio)
			}
		}
	}
	left := unmeasuredLimits()
	for _, name := range slices.Sorted(maps.Keys(left)) {
		fmt.Fprintf(w, "--%s\t\t\t\t\t%s: %s\n", name, left[name].test, left[name].why)
	}
	must(t, w.Flush())
	t.Logf("%d limits, and %d settings that are not driven here\n%s", len(slices.Concat(rowsOf(groups)...)), len(left), table.String())
}

func rowsOf(groups []limits) (rows [][]limit) {
	for _, group := range groups {
		rows = append(rows, group.rows)
	}
	return rows
}

// start runs a server with the limits of the group.
func (l limits) start(t *testing.T) *stand {
	t.Helper()
	s := &stand{tb: t, ctx: t.Context(), dir: t.TempDir(), agent: "a", model: MustModel(t), site: MustSite(t), change: l.change}
	for name, text := range l.files {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(s.dir, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600))
	}
	args := l.both
	for _, row := range l.rows {
		args = append(args, "--"+row.setting, row.value)
	}
	if s.start(args); s.process == nil {
		t.Fatal(s.refusal)
	}
	return s
}
