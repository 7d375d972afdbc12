package record

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// decoded reads metadata as the standard library does, which is slow and sure.
type decoded struct {
	*json.Decoder
	values []MetadataValue
}

func (d *decoded) value(path string, inArray bool, depth int) {
	token, _ := d.Token()
	switch v := token.(type) {
	case json.Delim:
		if depth > 0 && !inArray {
			d.values = append(d.values, MetadataValue{Path: path, Kind: MetadataGroup})
		}
		for d.More() {
			member := path
			if v == '{' {
				name, _ := d.Token()
				member = MetadataPath(path, name.(string))
			}
			d.value(member, inArray || v == '[', depth+1)
		}
		_, _ = d.Token()
	case string:
		d.values = append(d.values, MetadataValue{path, MetadataText, v, inArray})
	case json.Number:
		d.values = append(d.values, MetadataValue{path, MetadataNumber, CanonicalNumber(v.String()), inArray})
	case bool:
		d.values = append(d.values, MetadataValue{path, MetadataBool, strconv.FormatBool(v), inArray})
	}
}

// FuzzWalk: metadata are read as the standard library reads them.
func FuzzWalk(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` { "a" : [ 1 , -2.50e+3, {"b":[true,null,false]} ], "" : "" , "c\u0000\ud83d\ude00\ud800":"x\"\\\n","d":{} } `,
		`{"a":"\\","b":"\\\"","c":["]}{","\/"],"a":2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 || checkMetadata(b) != nil {
			return
		}
		var got []MetadataValue
		if err := WalkMetadata(b, func(v MetadataValue) { got = append(got, v) }); err != nil {
			return // nests too deep
		}
		want := decoded{Decoder: json.NewDecoder(bytes.NewReader(b))}
		want.UseNumber()
		want.value("", false, 0)
		if diff := cmp.Diff(want.values, got, cmp.AllowUnexported(MetadataValue{})); diff != "" {
			t.Errorf("%q (-want +got):\n%s", b, diff)
		}
	})
}

// FuzzWalkDamaged: what is no JSON ends, too.
func FuzzWalkDamaged(f *testing.F) {
	f.Add([]byte(`{"a":[[["x`))
	f.Add([]byte(`{"a":"b\`))
	f.Fuzz(func(_ *testing.T, b []byte) { _ = WalkMetadata(b, func(MetadataValue) {}) })
}

func TestAddExponent(t *testing.T) {
	nines := strings.Repeat("9", 40)
	numbers := []string{"", "0", "-0", "7", "-7", "00012", "99999999999999999", "100000000000000000", "999999999999999999", "1000000000000000000", "-1000000000000000000", nines, "-" + nines, "1" + strings.Repeat("0", 40), "-1" + strings.Repeat("0", 40)}
	for _, number := range numbers {
		for _, by := range []int64{0, 1, -1, 65536, -65536} {
			want, _ := new(big.Int).SetString("0", 10)
			if number != "" {
				want.SetString(number, 10)
			}
			if got := addExponent(number, by); got != want.Add(want, big.NewInt(by)).String() {
				t.Errorf("%s + %d is %s, want %s", number, by, got, want)
			}
		}
	}
	for _, a := range numbers[3:5] {
		for _, b := range numbers[6:] {
			x, _ := new(big.Int).SetString(a, 10)
			y, _ := new(big.Int).SetString(b, 10)
			if got, want := compareIntegers(a, b), x.Cmp(y); got != want {
				t.Errorf("compare %s with %s: %d, want %d", a, b, got, want)
			}
		}
	}
}

// A number whose exponent fills the metadata costs no more than any other.
func TestNumbersOfManyDigits(t *testing.T) {
	metadata := []byte(`{"a":1e` + strings.Repeat("9", MaxMetadataBytes-20) + `}`)
	began := time.Now()
	const rounds = 50
	for range rounds {
		if _, err := MetadataTerms(metadata); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > time.Minute/2 {
		t.Errorf("%d took %v", rounds, took)
	}
}
