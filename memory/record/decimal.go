package record

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// CanonicalNumber returns one form for all spellings of a decimal number: 1,
// 1.0 and 10e-1 are 1e0. Digits are never lost.
func CanonicalNumber(text string) string {
	if len(text) == 1 && text != "0" {
		return text + "e0" // as most elements of arrays of numbers are
	}
	mantissa, exponentText, _ := strings.Cut(strings.ToLower(text), "e")
	sign := ""
	if rest, negative := strings.CutPrefix(mantissa, "-"); negative {
		sign, mantissa = "-", rest
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	significant := strings.TrimRight(digits, "0")
	if significant == "" {
		return "0"
	}
	exponent := addExponent(strings.TrimPrefix(exponentText, "+"), int64(len(digits)-len(significant)-len(fraction)))
	return sign + significant + "e" + exponent
}

// tailDigits is how many digits of an exponent are reckoned with as a number.
const tailDigits = 18

// addExponent returns an exponent plus a number of far fewer than tailDigits
// digits. It stays with text: an exponent may have tens of thousands of digits,
// and to make binary of them and back takes milliseconds each time.
func addExponent(exponent string, by int64) string {
	digits, negative := strings.CutPrefix(exponent, "-")
	digits = strings.TrimLeft(digits, "0")
	if len(digits) < tailDigits {
		number, _ := strconv.ParseInt("0"+digits, 10, 64)
		if negative {
			number = -number
		}
		return strconv.FormatInt(number+by, 10)
	}
	if negative {
		return "-" + addDigits(digits, -by)
	}
	return addDigits(digits, by)
}

// addDigits adds to a number of at least tailDigits digits.
func addDigits(digits string, by int64) string {
	const base = 1_000_000_000_000_000_000 // ten to the tailDigits
	head := []byte("0" + digits[:len(digits)-tailDigits])
	tail, _ := strconv.ParseInt(digits[len(digits)-tailDigits:], 10, 64)
	tail += by
	switch {
	case tail < 0:
		tail += base
		carry(head, '0', '9', -1)
	case tail >= base:
		tail -= base
		carry(head, '9', '0', 1)
	}
	return strings.TrimLeft(fmt.Sprintf("%s%0*d", head, tailDigits, tail), "0")
}

// carry adds one to digits or takes it from them: the last digit that is not
// full takes the step, and those behind it begin again.
func carry(digits []byte, full, again byte, step int) {
	for i := len(digits) - 1; i >= 0; i-- {
		if digits[i] != full {
			digits[i] += byte(step)
			return
		}
		digits[i] = again
	}
}

// Decimal is a number taken apart: 0.digits times ten to the point, or zero
// without digits.
type Decimal struct {
	negative bool
	digits   string
	point    int64
	far      string // instead of point where that is too small
}

// ParseDecimal takes a canonical number apart.
func ParseDecimal(canonical string) Decimal {
	mantissa, exponent, ok := strings.Cut(canonical, "e")
	if !ok {
		return Decimal{}
	}
	var d Decimal
	d.digits, d.negative = strings.CutPrefix(mantissa, "-")
	const safeDigits = 15 // of an exponent, so that sums stay within 64 bits
	if len(exponent) > safeDigits {
		d.far = addExponent(exponent, int64(len(d.digits)))
		return d
	}
	power, _ := strconv.ParseInt(exponent, 10, 64)
	d.point = int64(len(d.digits)) + power
	return d
}

// Compare orders numbers exactly.
func (d Decimal) Compare(other Decimal) int {
	if c := cmp.Compare(d.sign(), other.sign()); c != 0 || d.digits == "" {
		return c
	}
	c := cmp.Or(d.comparePoint(other), cmp.Compare(d.digits, other.digits))
	if d.negative {
		return -c
	}
	return c
}

func (d Decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

func (d Decimal) comparePoint(other Decimal) int {
	if d.far == "" && other.far == "" {
		return cmp.Compare(d.point, other.point)
	}
	return compareIntegers(d.pointText(), other.pointText())
}

func (d Decimal) pointText() string {
	if d.far != "" {
		return d.far
	}
	return strconv.FormatInt(d.point, 10)
}

// compareIntegers orders whole numbers without leading zeros.
func compareIntegers(a, b string) int {
	digitsA, negativeA := strings.CutPrefix(a, "-")
	digitsB, negativeB := strings.CutPrefix(b, "-")
	switch {
	case negativeA && negativeB:
		digitsA, digitsB = digitsB, digitsA
	case negativeA:
		return -1
	case negativeB:
		return 1
	}
	return cmp.Or(cmp.Compare(len(digitsA), len(digitsB)), cmp.Compare(digitsA, digitsB))
}
