// address.js reads and writes what stands behind # in the address of the page.

/** parse returns the view's name and params of an address such as #/deliveries/12?filter=x. */
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

/** link returns the address of a view. params without a value are left out. */
export function link(name, {id, ...params} = {}) {
  const set = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== '' && value !== false);
  const search = new URLSearchParams(set.map(([key, value]) => [key, value === true ? '1' : value])).toString();
  const path = id === undefined || id === null || id === '' ? '' : `/${encodeURIComponent(id).replaceAll('%3A', ':')}`;
  return `#/${name}${path}${search && `?${search}`}`;
}
