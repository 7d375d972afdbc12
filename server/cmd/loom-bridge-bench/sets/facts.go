package sets

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Fact is something about somebody that changes.
type Fact struct {
	// Key names it.
	Key string
	// Asked is a question for it as it is.
	Asked string
	// Said says it, first and after each change, oldest first: two to six texts.
	Said []string
	// Values are what each of them says.
	Values []string
}

// MaxFactChanges is how often a fact changes at most; each does at least once.
const MaxFactChanges = 5

// factValues are what can be said of somebody, and the values it takes.
var factValues = []struct{ name, values string }{
	{"dentist", "Doctor Amsel;Doctor Brandt;Doctor Okafor;Doctor Reyes;Doctor Lindqvist;Doctor Petrov"},
	{"favourite tea", "rooibos;oolong;peppermint;lapsang;fennel;jasmine"},
	{"car", "a green estate;an old pickup;an electric van;a yellow coupe;a hired hatchback;a tiny convertible"},
	{"project deadline", "12 March;3 April;28 May;9 June;17 August;30 September"},
	{"office", "room 204;room 317;the glass annex;room 12;the attic;room 451"},
	{"ringtone", "a cuckoo;church bells;a trombone;rain;a typewriter;a whistle"},
	{"gym day", "Monday;Tuesday;Wednesday;Thursday;Friday;Sunday"},
	{"landlord", "Mister Hale;a housing co-op;Missus Varga;the parish;Mister Ito;an insurance firm"},
	{"password hint", "first pet;blue bicycle;grandmother's street;old school;summer lake;lost umbrella"},
	{"seat at the opera", "row 4;row 11;row 19;the left balcony;the gallery;row 2"},
	{"blood pressure pill", "Renavet;Calmora;Nefril;Tensalin;Ardopin;Velodrix"},
	{"train home", "the 17:05;the 18:20;the 16:48;the 19:33;the 20:10;the 15:55"},
	{"dog", "a beagle;a whippet;a poodle;a collie;a dachshund;a boxer"},
	{"bank", "Northgate Savings;Union of Farmers;Harbour Credit;First Cooperative;Lakeside Trust;Old Mint"},
	{"shoe size", "38;39;41;42;44;45"},
	{"choir part", "alto;tenor;soprano;baritone;bass;descant"},
	{"breakfast", "porridge;rye toast;fruit salad;pancakes;miso soup;a boiled egg"},
	{"phone plan", "Basic Ten;Family Forty;Roamer;Night Owl;Student Plus;Unlimited"},
	{"holiday plan", "the Faroe Islands;Trieste;a canal boat;Tbilisi;the Black Forest;Galway"},
	{"wifi name", "Penguin Café;Upstairs;Borrowed Light;Third Floor;Teapot;Signal Hill"},
}

// Facts makes up facts about people of different names. The same number gives the same
// facts, and a smaller number gives a prefix of them.
func Facts(n int) []Fact {
	all := make([]Fact, n)
	for i := range all {
		rng := rand.New(rand.NewPCG(uint64(i), 31)) //nolint:gosec // repeatable on purpose
		about := factValues[i%len(factValues)]
		person := factPerson(i / len(factValues))
		values := strings.Split(about.values, ";")
		rng.Shuffle(len(values), func(a, b int) { values[a], values[b] = values[b], values[a] })
		values = values[:2+rng.IntN(MaxFactChanges)]
		f := Fact{
			Key:    strings.ReplaceAll(person+"/"+about.name, " ", "-"),
			Asked:  fmt.Sprintf(pick(rng, factQuestions), person, about.name),
			Values: values,
		}
		for k, value := range values {
			forms := factChanges
			if k == 0 {
				forms = factFirsts
			}
			f.Said = append(f.Said, strings.NewReplacer("{who}", person, "{what}", about.name, "{value}", value).Replace(pick(rng, forms)))
		}
		all[i] = f
	}
	return all
}

var (
	factQuestions = []string{"What is %s's %s?", "Which is %s's %s now?", "Tell me %s's %s."}
	factFirsts    = []string{"{who}'s {what} is {value}.", "The {what} of {who} is {value}.", "For {who} the {what} is {value}."}
	factChanges   = []string{
		"{who}'s {what} is {value} now.", "{who} changed the {what} to {value}.", "The {what} of {who} is {value}.",
		"{who}'s new {what}: {value}.", "From this week on {who}'s {what} is {value}.",
	}
)

// factPerson makes up a name; different numbers have different names.
func factPerson(n int) string {
	const first, vowels, middle, last = "BDFGHKLMNPRSTVZ", "aeiou", "lmnrst", "kndlxs"
	var b strings.Builder
	for _, letters := range []string{first, vowels, middle, vowels, last} {
		b.WriteByte(letters[n%len(letters)])
		n /= len(letters)
	}
	for ; n > 0; n /= len(vowels) {
		b.WriteByte(vowels[n%len(vowels)])
	}
	return b.String()
}
