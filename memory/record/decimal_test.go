package record

import (
	"encoding/json"
	"math/big"
	"regexp"
	"testing"
)

func FuzzDecimal(f *testing.F) {
	for _, seed := range [][2]string{{"1", "2"}, {"-0.5", "1e-1"}, {"1e99999999999999999999", "1e99999999999999999998"}, {"0", "-0.0"}, {"12", "123"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, okX := exact(a)
		y, okY := exact(b)
		if !okX || !okY {
			t.Skip("not two numbers that a big.Rat holds")
		}
		if got, want := ParseDecimal(CanonicalNumber(a)).Compare(ParseDecimal(CanonicalNumber(b))), x.Cmp(y); got != want {
			t.Errorf("compare %s with %s: %d, want %d", a, b, got, want)
		}
	})
}

var smallExponent = regexp.MustCompile(`^[^eE]*([eE][+-]?[0-9]{1,3})?$`)

// exact returns the value of a JSON number with an exponent of a few digits.
func exact(text string) (*big.Rat, bool) {
	var number json.Number
	if !smallExponent.MatchString(text) || json.Unmarshal([]byte(text), &number) != nil || number.String() != text {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

func TestDecimalsFarOut(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"1e99999999999999999999", "1e99999999999999999998", 1},
		{"-1e99999999999999999999", "1e-99999999999999999999", -1},
		{"-1e99999999999999999999", "-1", -1},
		{"1e-99999999999999999999", "0", 1},
		{"10e99999999999999999999", "1e100000000000000000000", 0},
	} {
		if got := ParseDecimal(CanonicalNumber(tt.a)).Compare(ParseDecimal(CanonicalNumber(tt.b))); got != tt.want {
			t.Errorf("compare %s with %s: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
