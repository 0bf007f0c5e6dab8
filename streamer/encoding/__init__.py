"""How counted integers lie in arrays: types, limbs, and codes of segments."""
