package tokens_test

import "testing"

// No text is estimated at less than its scripts cost, nor at less than 1.2 of what
// o200k needs.
// P31
func TestEstimate(t *testing.T) {
	c := MustCounter(t, nil)
	for _, tt := range []struct {
		text string
		want int
	}{
		{"", 0},
		{"a", 1},
		{"abcd", 1},
		{"abcde", 2},
		{"天地玄黄", 4},             // 3.16
		{"ひらがなカー", 6},           // 4.44, and five tokens of o200k
		{"안녕하세요", 4},            // 4.00
		{"안녕하세요!", 5},           // 4.25
		{"你好, world", 4},        // 1.58 + 1.75
		{"👍🎉", 4},               // 3.60
		{"\xff\xfe\xfd\xfc", 1}, // four characters of no script
	} {
		if got := MustCount(t, c, "of-nobody", tt.text); got.Tokens != tt.want || got.Counter != "estimate" || got.Exact {
			t.Errorf("%q: got %+v, want %d", tt.text, got, tt.want)
		}
	}
}

// The guess is near what a large vocabulary needs,
