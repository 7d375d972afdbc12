package question

import (
	"strings"
	"testing"
	"time"
)

func TestDatesIn(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC) // a Wednesday
	for text, want := range map[string]string{
		"What happened on 8 May 2023?":           "2023-05-08/2023-05-09",
		"the 8th of May, 2023":                   "2023-05-08/2023-05-09",
		"May 8, 2023 was sunny":                  "2023-05-08/2023-05-09",
		"on May 8th":                             "2026-05-08/2026-05-09 any year",
		"2023-05-08T10:00:00Z":                   "2023-05-08/2023-05-09",
		"between 2023-05 and 2023-12":            "2023-05-01/2023-06-01 2023-12-01/2024-01-01",
		"in May":                                 "2026-05-01/2026-06-01 any year",
		"May 2023":                               "2023-05-01/2023-06-01",
		"May I come in?":                         "",
		"in march they march on":                 "2026-03-01/2026-04-01 any year",
		"since 1999":                             "1999-01-01/2000-01-01",
		"1999 bottles":                           "",
		"in 45000 steps":                         "",
		"December 2024 or January":               "2024-12-01/2025-01-01 2026-01-01/2026-02-01 any year",
		"what did I say yesterday":               "2026-03-03/2026-03-04",
		"today":                                  "2026-03-04/2026-03-05",
		"last week":                              "2026-02-23/2026-03-02",
		"this month":                             "2026-03-01/2026-04-01",
		"last year":                              "2025-01-01/2026-01-01",
		"last chance":                            "",
		"two weeks ago":                          "2026-02-15/2026-02-22",
		"3 days ago":                             "2026-03-01/2026-03-02",
		"a year ago":                             "2024-09-02/2025-09-04",
		"31 February 2023":                       "2023-03-03/2023-03-04",
		"8 9 10":                                 "",
		"on 2023/5/8 and 2023.05.08":             "2023-05-08/2023-05-09 2023-05-08/2023-05-09",
		"in 2023 10 people came":                 "2023-01-01/2024-01-01",
		"am 8.5.2023":                            "2023-05-08/2023-05-09",
		"on 5/8/2023":                            "2023-08-05/2023-08-06 2023-05-08/2023-05-09",
		"on 12/25/2023":                          "2023-12-25/2023-12-26",
		"on 25/12/2023 or 5-5-2023":              "2023-12-25/2023-12-26 2023-05-05/2023-05-06",
		"13/14/2023 and 1/2/3":                   "",
		"what did we decide last Friday?":        "2026-02-27/2026-02-28",
		"on Wednesday, not Tuesday":              "2026-02-25/2026-02-26",
		"on tuesday":                             "2026-03-03/2026-03-04",
		"Friday I'm in love":                     "",
		"":                                       "",
		strings.Repeat("in 2020 ", 5):            strings.TrimSpace(strings.Repeat("2020-01-01/2021-01-01 ", 5)),
		"no dates here, 12 of them, ago and ago": "",
	} {
		var got []string
		for _, span := range dates(cut(nil, text), now) {
			day := func(at int64) string { return time.UnixMicro(at).UTC().Format(time.DateOnly) }
			got = append(got, day(span.From)+"/"+day(span.To))
			if span.Yearly {
				got = append(got, "any year")
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if n := len(dates(cut(nil, strings.Repeat("in 2020 ", 1000)), now)); n > 40 {
		t.Errorf("%d dates of one query", n)
	}
}
