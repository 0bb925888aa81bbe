// token.js - the token of this tab.
//
// It comes from the field or from the fragment of the address (`#token=...`), which browsers never send to a server. It
// is kept in this tab only: in no URL and no cookie, until the tab is closed.

const KEY = 'sluice.token';

// Removes a token from the address, where scripts/run has put it. Returns true if there was one.
export function takeTokenFromAddress() {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const token = fragment.get('token');
  if (!token) return false;
  fragment.delete('token');
  const rest = fragment.toString();
  history.replaceState(null, '', location.pathname + location.search + (rest ? `#${rest}` : ''));
  setToken(token);
  return true;
}

export function getToken() {
  return sessionStorage.getItem(KEY) ?? '';
}

export function setToken(token) {
  sessionStorage.setItem(KEY, token.trim());
}

// The claims of the token, not verified; null: not a JWT.
function readClaims(token) {
  try {
    const base64 = token.split('.')[1].replace(/-/g, '+').replace(/_/g, '/');
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const claims = JSON.parse(new TextDecoder().decode(bytes));
    return typeof claims === 'object' ? claims : null;
  } catch {
    return null;
  }
}

// Also if it expires within `ms`.
export function isExpired(token, ms = 0) {
  const end = readClaims(token)?.exp;
  return typeof end === 'number' && end * 1000 < Date.now() + ms;
}

// Describes it for the user who pasted it.
export function describeToken(token) {
  if (!token) return 'A JWT. “sluice token” creates one; scripts/run prints an address that contains one.';
  const claims = readClaims(token);
  if (!claims) return 'This is not a JWT.';
  const parts = [];
  if (claims.sub !== undefined) parts.push(`Subject ${claims.sub}`);
  if (typeof claims.exp === 'number') {
    const end = new Date(claims.exp * 1000);
    parts.push(isExpired(token) ? 'expired' : `until ${end.toLocaleString(undefined, {
      month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hour12: false })}`);
  }
  const scopes = String(claims.scope ?? '').split(' ').filter(Boolean);
  if (scopes.length > 0) parts.push(scopes.map((scope) => scope.replace('stream:', '')).join(', '));
  return parts.join(' · ');
}

export function hasScope(token, scope) {
  return String(readClaims(token)?.scope ?? '').split(' ').includes(scope);
}

// The streams that it permits, widest first; empty: it does not say.
export function permittedStreams(token) {
  const scopes = String(readClaims(token)?.scope ?? '').split(' ');
  return ['firehose', 'filter', 'sample', 'home'].filter((stream) => scopes.includes(`stream:${stream}`));
}
