#!/bin/sh
# The compiler, as cargo calls it for the crates of the workspace (.cargo/config.toml): programs of
# tests are not optimised, while the crates that they test are. Generic code, of which the decoders
# and sessions are full, is compiled again for each of them: optimised it takes ten times as long,
# more than all tests run: docs/adr/0075-builds-of-tests.md.
case " $* " in
*" opt-level=1 "*" --test "*) ;;
*) exec "$@" ;;
esac
# Those that compute for longer than it takes to optimise them.
case $3 in
fanfare_engine | fanfare_history | fanfare_wire) exec "$@" ;;
book | fragments | recovery | session | spectra) exec "$@" ;;
esac
exec "$@" -C opt-level=0
