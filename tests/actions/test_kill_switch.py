"""The harmful arm is turned off in a real server of flags, read back, and turned on by a person."""

from __future__ import annotations

from pathlib import Path

from tests.actions.test_bodies import RECIPES
from tests.actions.world import World, even, harmful, lines_of, nobody, settings_of, until_sent
from tests.support.lanes import long
from tests.support.unleash import TOKEN, Unleash

pytestmark = long

FLAG = "/api/admin/projects/default/features/ranker/environments/development"


async def test_a_harmful_arm_is_turned_off_and_stays_off_until_a_person_turns_it_on(
    tmp_path: Path,
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "unleash.txt").write_text(RECIPES["unleash.txt"])
    with Unleash(tmp_path) as server:
        server.ask("POST", "/api/admin/projects/default/features", {"name": "ranker"})
        server.ask("POST", f"{FLAG}/strategies", {"name": "default"})
        server.ask("POST", f"{FLAG}/on")
        hook = {
            "url": f"{server.url}{FLAG}/off",
            "on": ["harm"],
            "template": str(tmp_path / "unleash.txt"),
            "secret_file": str(tmp_path / "token"),
        }
        world = World(settings_of(hook))
        await world.feed(lines_of(0, range(400), nobody, even))
        leader = world.leader()
        await leader.turn()
        await until_sent(leader)
        assert server.ask("GET", FLAG)["enabled"]
        await world.feed(lines_of(1, range(400, 1200), harmful, even))
        await leader.turn()
        await until_sent(leader)
        assert not server.ask("GET", FLAG)["enabled"]
        (delivery,) = leader.acted.deliveries.values()
        assert delivery.is_told
        server.ask("POST", f"{FLAG}/on")  # a person, who knows why
        await world.feed(lines_of(2, range(1200, 1600), nobody, even))
        for _ in range(2):
            await leader.turn()
            await until_sent(leader)
        assert server.ask("GET", FLAG)["enabled"]
        await leader.close()
