package inject_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
)

// clocked are the forms in which people write what time it is: each with what it leaves of
// a cached text, and what stands at the end.
var clocked = []struct{ text, left, clock string }{
	{"Now: 2026-11-29T00:01:02Z\nYou are careful.", "You are careful.", "Now: 2026-11-29T00:01:02Z"},
	{"<time>2026-11-29 00:01</time>\nYou are careful.", "You are careful.", "2026-11-29 00:01"},
	{"<current_datetime>\n  Sunday, November 29, 2026 at 12:01 AM\n</current_datetime>\nYou are careful.", "You are careful.", "Sunday, November 29, 2026 at 12:01 AM"},
	{"Current time: 00:01:02\nYou are careful.", "You are careful.", "Current time: 00:01:02"},
	{"Current time: 2:05 PM (UTC)\nYou are careful.", "You are careful.", "Current time: 2:05 PM (UTC)"},
	{"Today is Sunday, November 29, 2026. You are careful.", "You are careful.", "Today is Sunday, November 29, 2026"},
	{"Today is 2026-11-29", "", "Today is 2026-11-29"},
	{"Current date: 2026-11-29\nYou are careful.", "You are careful.", "Current date: 2026-11-29"},
	{"You are careful. The current date is 29 November 2026. Be brief.", "You are careful. Be brief.", "The current date is 29 November 2026"},
	{"**Current date:** 2026-11-29\nYou are careful.", "You are careful.", "Current date: 2026-11-29"},
	{"- Current date and time: Sun, 29 Nov 2026 00:01:02 GMT\nYou are careful.", "You are careful.", "Current date and time: Sun, 29 Nov 2026 00:01:02 GMT"},
	{"2026-11-29T00:01:02+01:00\nYou are careful.", "You are careful.", "2026-11-29T00:01:02+01:00"},
	{"2026-11-29T00:01:02.123456+01:00\n\nYou are careful.", "You are careful.", "2026-11-29T00:01:02.123456+01:00"},
	{"Sun, 29 Nov 2026 00:01:02 +0100\nYou are careful.", "You are careful.", "Sun, 29 Nov 2026 00:01:02 +0100"},
	{"Sun Nov 29 00:01:02 UTC 2026\nYou are careful.", "You are careful.", "Sun Nov 29 00:01:02 UTC 2026"},
	{"Sun Nov 29 2026 00:01:02 GMT+0100 (Central European Standard Time)\nYou are careful.", "You are careful.", "Sun Nov 29 2026 00:01:02 GMT+0100 (Central European Standard Time)"},
	{"11/29/2026, 12:01:02 AM\nYou are careful.", "You are careful.", "11/29/2026, 12:01:02 AM"},
	{"29.11.2026 00:01\nYou are careful.", "You are careful.", "29.11.2026 00:01"},
	{"Sunday, November 29, 2026\nYou are careful.", "You are careful.", "Sunday, November 29, 2026"},
	{"It is now 14:05 on 29/11/2026. You are careful.", "You are careful.", "It is now 14:05 on 29/11/2026"},
	{"Today's date: 29/11/2026.\nYou are careful.", "You are careful.", "Today's date: 29/11/2026"},
	{"current_time = 2026-11-29T00:01:02Z\nYou are careful.", "You are careful.", "current_time = 2026-11-29T00:01:02Z"},
	{"Date: Sun, 29 Nov 2026 00:01:02 GMT\nYou are careful.", "You are careful.", "Date: Sun, 29 Nov 2026 00:01:02 GMT"},
	{"You are careful. (Current time: 14:05 UTC) Be brief.", "You are careful. Be brief.", "Current time: 14:05 UTC"},
	{"Heute ist Sonntag, der 29. November 2026.\nDu bist sorgsam.", "Du bist sorgsam.", "Heute ist Sonntag, der 29. November 2026"},
	{"Heute ist Sonntag, 29. November 2026.\nDu bist sorgsam.", "Du bist sorgsam.", "Heute ist Sonntag, 29. November 2026"},
	{"Aktuelle Uhrzeit: 14:05 Uhr\nDu bist sorgsam.", "Du bist sorgsam.", "Aktuelle Uhrzeit: 14:05 Uhr"},
	{"Nous sommes le dimanche 29 novembre 2026. Sois bref.", "Sois bref.", "Nous sommes le dimanche 29 novembre 2026"},
	{"Hoy es domingo, 29 de noviembre de 2026. Sé breve.", "Sé breve.", "Hoy es domingo, 29 de noviembre de 2026"},
	{"Fecha actual: 29/11/2026\nSé breve.", "Sé breve.", "Fecha actual: 29/11/2026"},
	{"当前时间：2026年11月29日 00:01:02\n请简短。", "请简短。", "当前时间：2026年11月29日 00:01:02"},
	{"今天是2026年11月29日。请简短。", "请简短。", "今天是2026年11月29日"},
	{"現在の日時は2026年11月29日 0時01分\n短く。", "短く。", "現在の日時は2026年11月29日 0時01分"},
}

// fixed are texts with times that say nothing of now.
var fixed = []string{
	"The library was released 2021-03-04.", "Released 2021-03-04\nYou are careful.", "Ann was born on November 29, 1986.",
	"You are careful.\n2021-03-04", "The desk opens at 9:30 and closes at 17:30.", "Version 2026.11.29 is out.",
	"Since 2021-03-04T10:00:00Z the API is stable.", "Knowledge cutoff: 2024-06-01", "Use the date 2021-03-04 in examples.",
	"Date: 2021-03-04 was when the war ended.", "The ratio is 10:30.", "Call +49 30 2026 1234567890.", "Now: go on with step 2026.",
	"What he knows now: 2021-03-04 was a Thursday and it rained.", "Today is the day: 10 things", "John 3:16 is a verse.",
	"The meeting of 29.11.2026 at 14:00 is in Rome.", "## Changes of 2021-03-04", "History: 2021-03-04 founded, 2022-01-02 sold",
	"Unknown: 2021-03-04", "Renowned now 12 of 2026 people.", "<date>any day in 2026</date>", "Deadline: 2026-11-29 14:00",
}

// M02
func TestClocksLeaveCachedTexts(t *testing.T) {
	for _, tt := range clocked {
		stable := at("stable", inject.System, inject.Stable, 50)
		stable.Text = tt.text
		a := arrange(stable)
		want := ""
		if tt.clock != "" {
			want = "Timestamps: " + tt.clock
		}
		if got, clock := a.Text(inject.System), a.Text(inject.Runtime); got != tt.left || clock != want {
			t.Errorf("%q: left %q, want %q; at the end %q, want %q", tt.text, got, tt.left, clock, want)
		}
	}
	for _, text := range fixed {
		stable := at("stable", inject.System, inject.Stable, 50)
		stable.Text = text
		if a := arrange(stable); a.Text(inject.System) != text || a.Text(inject.Runtime) != "" {
			t.Errorf("%q: left %q, at the end %q", text, a.Text(inject.System), a.Text(inject.Runtime))
		}
	}
}

// amid are places in the middle of a text; %s stands for a sentence.
var amid = []string{"You are careful.\n%s\nBe brief.", "You are careful. %s. Be brief.", "# Role\n\nYou are careful.\n\n- %s.\n\n# Rules\nBe brief."}

// What time it is leaves the middle of a text as it leaves its beginning, in whatever order and
// with whatever zone people say it.
//
// M02
func TestClocksLeaveTheMiddle(t *testing.T) {
	for _, said := range []string{
		"Now: 2026-11-29T00:01:02Z", "Current time: 2:05 PM (UTC)", "Today is Sunday, November 29, 2026", "The current date is 29 November 2026", "Today's date: 29/11/2026",
		"**Current date:** 2026-11-29", "It is now 14:05 on 29/11/2026", "Heute ist Sonntag, der 29. November 2026", "Nous sommes le dimanche 29 novembre 2026",
		"2026-11-29T00:01:02+01:00", "Sun, 29 Nov 2026 00:01:02 +0100", "Sun Nov 29 00:01:02 UTC 2026", "11/29/2026, 12:01:02 AM", "29.11.2026 00:01", "Date: Sun, 29 Nov 2026 00:01:02 GMT",
		"The current date and time is Sunday, November 29, 2026 at 2:05 PM", "The current time is 2:05 p.m", "The time now is 14:05", "The date today is 2026-11-29", "The user's local time is 14:05",
		"Your local time is 14:05 CET", "Today’s date: November 29, 2026", "Today's date (UTC): 2026-11-29", "Current time (Europe/Berlin): 14:05", "Current Time [UTC]: 2026-11-29 14:05",
		"The current time is 14:05 and the date is 2026-11-29", "Es ist jetzt 14:05 Uhr und heute ist Sonntag, der 29. November 2026", "It's currently 14:05",
	} {
		for _, place := range amid {
			stable := at("stable", inject.System, inject.Stable, 50)
			stable.Text = fmt.Sprintf(place, said)
			a := arrange(stable)
			if left, clock := a.Text(inject.System), a.Text(inject.Runtime); strings.ContainsAny(left, "0123456789") || !strings.HasPrefix(clock, "Timestamps: ") ||
				!strings.HasPrefix(left, strings.Split(place, "You")[0]+"You are careful.") || !strings.HasSuffix(left, "Be brief.") {
				t.Errorf("%q: left %q, at the end %q", stable.Text, left, clock)
			}
		}
	}
	for text, left := range map[string]string{
		"Be brief.\n## Current time\n14:05:02\n\nBe kind.":                            "Be brief.\n## Current time\n\nBe kind.",
		"Be brief.\n<system_time>2026-11-29 14:05</system_time>\nBe kind.":            "Be brief.\nBe kind.",
		"Be brief.\n<env>\n  Today's date: 2026-11-29\n  OS: linux\n</env>\nBe kind.": "Be brief.\n<env>\n  OS: linux\n</env>\nBe kind.",
		"Be brief.\nGenerated at 2026-11-29 14:05:02\nBe kind.":                       "Be brief.\nBe kind.",
	} {
		stable := at("stable", inject.System, inject.Stable, 50)
		stable.Text = text
		if a := arrange(stable); a.Text(inject.System) != left || a.Text(inject.Runtime) == "" {
			t.Errorf("%q: left %q, want %q; at the end %q", text, a.Text(inject.System), left, a.Text(inject.Runtime))
		}
	}
}

// A sentence that only mentions a time stays, wherever it stands.
func TestMentionedTimesStay(t *testing.T) {
	for _, said := range []string{
		"The firm was founded on 3 May 1999", "The firm was founded on 3 May 1999 at 14:00", "The war ended 2021-03-04", "The train leaves at 2026-11-29 14:05", "Your date is 2021-03-04",
		"The current time is 2:05 p.m. in Rome", "The current law is of 2021-03-04", "At 14:05 and 15:05 the bell rings", "Open from 9:30 and until 17:30", "Present: 2021-03-04 and all others",
		"The release of 2021-03-04 10:00 is final", "2021-03-04 10:00 was when it began", "The time is 14:05 and the bell rings", "As of 2021-03-04 10:00, nothing changed", "Monday 3 May 1999 at 10:00 and later",
		"The next meeting is on November 29, 2026 at 2:05 PM", "Today the firm has 2026 people", "The answer is 2021-03-04", "Which is it? 2021-03-04 10:00",
	} {
		for _, place := range amid {
			stable := at("stable", inject.System, inject.Stable, 50)
			stable.Text = fmt.Sprintf(place, said)
			if a := arrange(stable); a.Text(inject.System) != stable.Text || a.Text(inject.Runtime) != "" {
				t.Errorf("%q: left %q, at the end %q", stable.Text, a.Text(inject.System), a.Text(inject.Runtime))
			}
		}
	}
}

// A text that is written at another time leaves the same bytes.
func TestClocksOfAnotherTimeLeaveTheSame(t *testing.T) {
	later := strings.NewReplacer("2026", "2027", "29", "30", ":01", ":47", "14:05", "23:59", "Sun", "Mon", "Nov", "Dec")
	for _, tt := range clocked {
		if tt.clock == "" || strings.Contains(tt.text, "Sonntag") || strings.Contains(tt.text, "nov") {
			continue
		}
		stable := at("stable", inject.System, inject.Stable, 50)
		stable.Text = later.Replace(tt.text)
		if a := arrange(stable); a.Text(inject.System) != tt.left {
			t.Errorf("%q: left %q, want %q", stable.Text, a.Text(inject.System), tt.left)
		}
	}
}

// Any text gives a text without its clocks, in which no other is found; and no clock is
// anything but digits and words of times.
func FuzzClocks(f *testing.F) {
	for _, tt := range clocked {
		f.Add(tt.text)
	}
	for _, text := range fixed {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		stable := at("stable", inject.System, inject.Stable, 50)
		stable.Text = text
		a := arrange(stable)
		if left := a.Text(inject.System); len(left) > len(text)+16 && !strings.Contains(text, "<") {
			t.Errorf("%q became longer: %q", text, left)
		}
	})
}
