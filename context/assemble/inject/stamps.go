package inject

import (
	"regexp"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/settings"
)

// stamp is a time as logs and clocks write it.
const stamp = `\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})?`

// stamps matches the time stamps removed from cached texts: a stamp in brackets anywhere,
// and one that begins a line and is followed by a colon and a space. The blank behind a
// stamp goes with it.
var stamps = regexp.MustCompile(`(?m:^)\[?(` + stamp + `)\]?: |\[(` + stamp + `)\] ?`)

// stampsHead begins the list of the stamps that were taken out.
const stampsHead = "Timestamps: "

// takeStamps takes the stamps and clocks out of a text that is cached, and remembers them.
func (a *arranger) takeStamps(s string) string {
	found := func(t string) {
		if !slices.Contains(a.stamps, t) {
			a.stamps = append(a.stamps, t)
		}
	}
	if mayHoldStamp(s) {
		for _, m := range stamps.FindAllStringSubmatch(s, -1) {
			found(m[1] + m[2])
		}
		s = stamps.ReplaceAllString(s, "")
	}
	return takeClocks(s, found)
}

// mayHoldStamp reports whether a text has the minutes of a stamp anywhere, which few have.
// Asking the expression itself takes a hundred times longer.
func mayHoldStamp(s string) bool {
	const before, after = len("2006-01-02T15"), len(":04:05")
	for at := strings.IndexByte(s, ':'); at >= 0; {
		if at >= before && len(s)-at >= after && s[at+3] == ':' && s[at-6] == '-' && s[at-9] == '-' {
			return true
		}
		next := strings.IndexByte(s[at+1:], ':')
		if next < 0 {
			return false
		}
		at += 1 + next
	}
	return false
}

// addStamps lists the removed stamps. given is the index behind all others.
func (a *arranger) addStamps(given int) {
	if len(a.stamps) == 0 {
		return
	}
	a.add(&Injection{
		Name: settings.Timestamps, Phase: Runtime, Cache: Dynamic, Framed: true, Source: "cached texts",
		Text: stampsHead + strings.Join(a.stamps, ", "),
	}, given)
}
