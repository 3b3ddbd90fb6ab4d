// what: a call that may be retried is, until it succeeds
// result: {"left": 7, "tries": 3}
import { shop } from '@capabilities/shop';
async function stock(tries = 1): Promise<{ left: number; tries: number }> {
  try {
    const { left } = (await shop.checkStock()) as { left: number };
    return { left, tries };
  } catch (error) {
    if (!error.retryable || tries === 5) throw error;
    return stock(tries + 1);
  }
}
export default await stock();
