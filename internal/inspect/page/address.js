// address.js reads and writes what stands behind # in the address of the page.

/** parse returns the view's name and params of an address such as #/deliveries/12?search=x. */
export function parse(hash) {
  const [path, search = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  const [name = '', ...rest] = path.split('/');
  const params = Object.fromEntries(new URLSearchParams(search));
  if (rest.length > 0 && rest.join('') !== '') params.id = decoded(rest.join('/'));
  return {name: name || 'deliveries', params};
}

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

const isSet = (value) => value !== undefined && value !== null && value !== '' && value !== false;

/** query returns a query string of the params that have a value; true is 1. */
export function query(params) {
  const set = Object.entries(params ?? {}).filter(([, value]) => isSet(value));
  const text = new URLSearchParams(set.map(([name, value]) => [name, value === true ? '1' : value])).toString();
  return text && `?${text}`;
}

export function link(name, {id, ...params} = {}) {
  return `#/${name}${isSet(id) ? `/${encodeURIComponent(id).replaceAll('%3A', ':')}` : ''}${query(params)}`;
}
