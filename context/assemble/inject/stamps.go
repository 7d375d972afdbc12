package inject

import (
	"regexp"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/settings"
)

// stamp is a time as logs and clocks write it.
const stamp = `\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})?`

// stamps finds what is taken out of cached texts: a stamp in brackets anywhere, and one
// that begins a line and is followed by a colon and a space.
// The blank behind a stamp goes with it.
var stamps = regexp.MustCompile(`(?m:^)\[?(` + stamp + `)\]?: |\[(` + stamp + `)\] ?`)

// stampsHead begins the list of the stamps that were taken out.
const stampsHead = "Timestamps: "

// takeStamps takes the stamps out of a text that is cached, and remembers them.
func (a *arranger) takeStamps(s string) string {
	if !strings.Contains(s, ":") || !stamps.MatchString(s) {
		return s
	}
	for _, m := range stamps.FindAllStringSubmatch(s, -1) {
		if t := m[1] + m[2]; !slices.Contains(a.stamps, t) {
			a.stamps = append(a.stamps, t)
		}
	}
	return stamps.ReplaceAllString(s, "")
}

// addStamps lists what was taken out. given is behind all others.
func (a *arranger) addStamps(given int) {
	if len(a.stamps) == 0 {
		return
	}
	a.add(&Injection{
		Name: settings.Timestamps, Phase: Runtime, Cache: Dynamic, Framed: true, Source: "cached texts",
		Text: stampsHead + strings.Join(a.stamps, ", "),
	}, given)
}
