package analysis

import "strings"

// irregular holds the base form of English words whose forms no stemmer
// relates. It is never changed. Forms that are as often a separate word
// (bid, fit, wound) are left out unless the verb is the
// everyday meaning. Where a form belongs to two words, such as lives, the two share
// one base, so that each is found by all of its forms.
var irregular = irregularForms(`
	arise: arose arisen
	awake: awoke awoken
	bear: bore borne
	beat: beaten
	become: became
	begin: began begun
	bend: bent
	bind: bound
	bite: bit bitten
	bleed: bled
	blow: blew blown
	break: broke broken
	breed: bred
	bring: brought
	build: built
	burn: burnt
	buy: bought
	catch: caught
	choose: chose chosen
	come: came
	creep: crept
	deal: dealt
	dig: dug
	draw: drew drawn
	dream: dreamt
	drink: drank drunk
	drive: drove driven
	eat: ate eaten
	fall: fell fallen
	feed: fed
	feel: felt
	fight: fought
	find: found
	fly: flew flown
	forbid: forbade forbidden
	forget: forgot forgotten
	forgive: forgave forgiven
	freeze: froze frozen
	get: got gotten
	give: gave given
	go: went gone
	grow: grew grown
	hang: hung
	hear: heard
	hide: hid hidden
	hold: held
	keep: kept
	kneel: knelt
	know: knew known
	lay: laid
	lead: led
	lean: leant
	learn: learnt
	leave: left leaf leaves
	lend: lent
	lie: lain
	light: lit
	lose: lost
	make: made
	mean: meant
	meet: met
	overcome: overcame
	pay: paid
	prove: proven
	ride: rode ridden
	ring: rang rung
	rise: rose risen
	run: ran
	say: said
	see: saw seen
	seek: sought
	sell: sold
	send: sent
	shake: shook shaken
	shine: shone
	shoot: shot
	show: shown
	shrink: shrank shrunk
	sing: sang sung
	sink: sank sunk
	sit: sat
	sleep: slept
	slide: slid
	speak: spoke spoken
	spend: spent
	spin: spun
	spring: sprang sprung
	stand: stood
	steal: stole stolen
	stick: stuck
	sting: stung
	strike: struck stricken
	strive: strove striven
	swear: swore sworn
	sweep: swept
	swim: swam swum
	swing: swung
	take: took taken
	teach: taught
	tear: tore torn
	tell: told
	think: thought
	throw: threw thrown
	undergo: underwent undergone
	understand: understood
	wake: woke woken
	wear: wore worn
	weave: wove woven
	weep: wept
	win: won
	withdraw: withdrew withdrawn
	write: wrote written

	calf: calves
	child: children
	foot: feet
	goose: geese
	halve: half halves
	knife: knives
	loaf: loaves
	live: life lives
	man: men
	mouse: mice
	person: people
	self: selves
	shelve: shelf shelves
	thief: thieves
	tooth: teeth
	wife: wives
	wolf: wolves
	woman: women
`)

func irregularForms(lines string) map[string]string {
	forms := make(map[string]string)
	for line := range strings.Lines(lines) {
		base, others, _ := strings.Cut(strings.TrimSpace(line), ":")
		for form := range strings.FieldsSeq(others) {
			forms[form] = base
		}
	}
	return forms
}
