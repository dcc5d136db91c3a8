package conversation

// UnderRace is underRace for the tests outside of the package.
const UnderRace = underRace
