//go:build race

package gateway

// underRace makes large tests smaller: the detector slows them tenfold.
const underRace = true
